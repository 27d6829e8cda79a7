/* POSIX asynchronous I/O: posts four writes of 64 KiB at a time, computes, waits for them; ten times. Usage: FILE */
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    static char block[4][1 << 16];
    int fd = open(arguments[count - 1], O_CREAT | O_TRUNC | O_WRONLY, 0644);
    if (fd < 0)
        return 1;
    for (int step = 0; step < 10; step++) {
        struct aiocb requests[4];
        memset(requests, 0, sizeof requests);
        for (int i = 0; i < 4; i++) {
            requests[i].aio_fildes = fd;
            requests[i].aio_buf = block[i];
            requests[i].aio_nbytes = sizeof block[i];
            requests[i].aio_offset = (4 * step + i) * (off_t)sizeof block[i];
            if (aio_write(&requests[i]))
                return 1;
        }
        usleep(2000);
        for (int i = 0; i < 4; i++) {
            const struct aiocb *one = &requests[i];
            while (aio_error(&requests[i]) == EINPROGRESS)
                aio_suspend(&one, 1, NULL);
            if (aio_return(&requests[i]) != (ssize_t)sizeof block[i])
                return 1;
        }
    }
    return fsync(fd) || close(fd);
}
