/* Calls of many sizes and several kinds on a few files, some of which fail. What it does depends on its arguments only:
 * a folder and a number of rounds. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char bytes[1 << 16];

int main(int count, char **arguments)
{
    char path[4096];
    int rounds = atoi(arguments[2]);
    int fd[3], only_read;
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%d", arguments[1], i);
        fd[i] = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    }
    only_read = open(path, O_RDONLY);
    FILE *stream = fopen(path, "a");
    for (int i = 0; i < rounds; i++) {
        size_t size = (size_t)(i % 4 == 0 ? 512 : i * 7919 % 3000);
        pwrite(fd[i % 3], bytes, size, i);
        if (i % 5 == 0)
            lseek(fd[i % 2], 0, SEEK_SET);
        if (i % 7 == 0)
            read(fd[0], bytes, sizeof bytes);
        if (i % 11 == 0)
            write(only_read, bytes, 8);
        fwrite(bytes, 1, (size_t)(i % 13), stream);
    }
    fclose(stream);
    return count == 3 ? 0 : 2;
}
