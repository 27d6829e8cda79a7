/* Makes every call of the POSIX table on files in the folder that it is given, and prints what each returned. Built
 * also with 64-bit names and with fortified names. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define SAY(call) \
    do { \
        errno = 0; \
        long long result = (long long)(call); \
        printf("%-60s %lld %d\n", #call, result, errno); \
    } while (0)

int main(int count, char **arguments)
{
    char buffer[4096];
    /* Lengths that the compiler cannot know, so that fortified calls check them when they run. */
    size_t hundred = 99 + (size_t)count / 2, ten = hundred / 10;
    volatile int flags = O_RDWR;
    memset(buffer, 'x', sizeof buffer);
    if (count != 2 || chdir(arguments[1]) != 0)
        return 2;
    int folder = open(".", O_RDONLY | O_DIRECTORY);
    int fd = open("a.data", O_RDWR | O_CREAT | O_TRUNC, 0640);
    SAY(write(fd, buffer, hundred));
    SAY(pwrite(fd, buffer, ten, 1000));
    struct iovec parts[2] = {{buffer, hundred}, {buffer + 200, ten}};
    SAY(writev(fd, parts, 2));
    SAY(pwritev(fd, parts, 2, 2000));
    SAY(pwritev2(fd, parts, 2, 3000, 0));
    SAY(pwritev2(fd, parts, 1, -1, 0));
    SAY(lseek(fd, 0, SEEK_CUR));
    SAY(lseek(fd, 5, SEEK_SET));
    SAY(read(fd, buffer, hundred));
    SAY(pread(fd, buffer, ten, 1000));
    SAY(readv(fd, parts, 2));
    SAY(preadv(fd, parts, 2, 2000));
    SAY(preadv2(fd, parts, 2, 3000, 0));
    SAY(preadv2(fd, parts, 1, -1, 0));
    SAY(lseek(fd, 0, SEEK_CUR));
    SAY(fsync(fd));
    SAY(fdatasync(fd));
    SAY(ftruncate(fd, 500));
    int copy = dup(fd);
    SAY(dup2(fd, 40));
    SAY(dup3(fd, 41, O_CLOEXEC));
    SAY(read(40, buffer, ten));
    SAY(lseek(41, 0, SEEK_CUR));
    SAY(close(copy));
    SAY(close(40));
    SAY(close(fd));
    SAY(pwrite(41, buffer, ten, 0));
    SAY(close(41));
    SAY(fd = openat(folder, "b.data", O_WRONLY | O_CREAT | O_APPEND, 0600));
    SAY(write(fd, buffer, hundred));
    SAY(write(fd, buffer, ten));
    SAY(read(fd, buffer, ten)); /* not open for reading */
    SAY(close(fd));
    SAY(fd = creat("c.data", 0600));
    SAY(write(fd, buffer, 0));
    SAY(lseek(fd, -1, SEEK_SET));
    SAY(close(fd));
    SAY(fd = open("b.data", flags));
    SAY(read(fd, buffer, sizeof buffer));
    SAY(read(fd, buffer, ten));
    SAY(read(fd, (void *)8, ten));
    SAY(readv(fd, (struct iovec *)8, 2));
    SAY(pwritev(fd, parts, -1, 0));
    SAY(close(fd));
    SAY(open("missing/d.data", flags));
    SAY(openat(folder, "missing.data", flags));
    SAY(open((char *)8, flags));
    SAY(read(-1, buffer, ten));
    SAY(close(999));
    SAY(dup2(999, 42));
    SAY(close(folder));
    return 7;
}
