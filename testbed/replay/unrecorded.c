#define _GNU_SOURCE
#include "unrecorded.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

int unrecorded_open(const char *path)
{
    return (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
}

int unrecorded_read(int descriptor, void *memory, size_t bytes)
{
    unsigned char *to = memory;
    while (bytes > 0) {
        long got = syscall(SYS_read, descriptor, to, bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return -1;
        to += got;
        bytes -= (size_t)got;
    }
    return 0;
}

void unrecorded_write(int descriptor, const void *memory, size_t bytes)
{
    const unsigned char *from = memory;
    while (bytes > 0) {
        long put = syscall(SYS_write, descriptor, from, bytes);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return;
        from += put;
        bytes -= (size_t)put;
    }
}

void unrecorded_close(int descriptor)
{
    syscall(SYS_close, descriptor);
}

int unrecorded_make(const char *path)
{
    long descriptor = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor < 0)
        return -1;
    unrecorded_close((int)descriptor);
    return 0;
}
