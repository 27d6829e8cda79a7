/* Copies by the kernel, from the folder's file `from` to `to`. */
#define _GNU_SOURCE
#include <assert.h>
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#define ALL_THERE_IS 0x7fffffffc0000000 /* cp asks for it */

int main(int count, char **words)
{
    char data[4000] = "data";
    int ends[2], sockets[2];
    assert(count == 2 && chdir(words[1]) == 0 && pipe(ends) == 0);
    assert(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
    int from = open("from", O_RDWR | O_CREAT, 0600), to = open("to", O_RDWR | O_CREAT, 0600);
    int appending = open("to", O_WRONLY | O_APPEND), unwritable = open("from", O_RDONLY);
    assert(pwrite(from, data, sizeof data, 0) == 4000);
    assert(copy_file_range(from, NULL, to, NULL, ALL_THERE_IS, 0) == 4000);
    assert(copy_file_range(from, NULL, to, NULL, ALL_THERE_IS, 0) == 0);
    off_t at = 10;
    assert(sendfile(to, from, &at, 5000) == 3990 && at == 4000);
    off64_t from_at = 0, to_at = 100;
    assert(splice(from, &from_at, ends[1], NULL, 600, 0) == 600);
    assert(splice(ends[0], NULL, to, &to_at, 4096, 0) == 600 && to_at == 700);
    at = 0;
    assert(sendfile(sockets[0], from, &at, 700) == 700);
    assert(write(ends[1], data, 50) == 50);
    assert(splice(ends[0], NULL, to, NULL, 50, 0) == 50);
    assert(copy_file_range(to, NULL, unwritable, NULL, 10, 0) == -1);
    assert(sendfile(appending, from, NULL, 10) == -1);
    return 0;
}
