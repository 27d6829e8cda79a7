#define _GNU_SOURCE
#include "unrecorded.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int unrecorded_open(const char *path)
{
    return (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
}

/* Copies from a mapping: the kernel does not count it as reading, which the record would lack. */
int unrecorded_read(int descriptor, void *memory, size_t bytes)
{
    struct stat status;
    const long at = syscall(SYS_lseek, descriptor, 0, SEEK_CUR);
    const long page = at - at % sysconf(_SC_PAGESIZE);
    const size_t length = bytes + (size_t)(at - page);
    if (at < 0 || syscall(SYS_fstat, descriptor, &status) || (size_t)status.st_size < (size_t)at + bytes)
        return -1;
    if (bytes == 0)
        return 0;
    const long mapped = syscall(SYS_mmap, NULL, length, PROT_READ, MAP_PRIVATE, descriptor, page);
    if (mapped < 0 && mapped > -4096)
        return -1;
    memcpy(memory, (const char *)mapped + (at - page), bytes);
    syscall(SYS_munmap, mapped, length);
    return syscall(SYS_lseek, descriptor, (long)((size_t)at + bytes), SEEK_SET) < 0 ? -1 : 0;
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
