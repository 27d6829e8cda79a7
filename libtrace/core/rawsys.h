/* rawsys.h: system calls that no wrapper intercepts.
 *
 * Each function returns what the kernel returns: a result, or minus an errno. They change errno, so every entry to a
 * slow path of the recorder saves and restores it. */
#ifndef ENSIO_CORE_RAWSYS_H
#define ENSIO_CORE_RAWSYS_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ENSIO_RAW(...) ensio_raw_result(syscall(__VA_ARGS__))

static inline long ensio_raw_result(long result)
{
    return result == -1 ? -errno : result;
}

/* Bytes of the recorder's own I/O, which the kernel counts as the process's. */
extern struct ensio_own_bytes {
    uint64_t read, written;
} ensio_own_bytes;

static inline long ensio_raw_read(int fd, void *to, uint64_t bytes)
{
    const long got = ENSIO_RAW(SYS_read, fd, to, bytes);
    ensio_own_bytes.read += got > 0 ? (uint64_t)got : 0;
    return got;
}

static inline long ensio_raw_read_at(int fd, void *to, uint64_t bytes, uint64_t position)
{
    const long got = ENSIO_RAW(SYS_pread64, fd, to, bytes, position);
    ensio_own_bytes.read += got > 0 ? (uint64_t)got : 0;
    return got;
}

static inline long ensio_raw_write_at(int fd, const void *bytes, uint64_t length, uint64_t position)
{
    const long wrote = ENSIO_RAW(SYS_pwrite64, fd, bytes, length, position);
    ensio_own_bytes.written += wrote > 0 ? (uint64_t)wrote : 0;
    return wrote;
}

static inline int ensio_raw_open(const char *path, int flags, unsigned mode)
{
    return (int)ENSIO_RAW(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, mode);
}

static inline void ensio_raw_close(int fd)
{
    syscall(SYS_close, fd);
}

static inline long ensio_raw_readlink(const char *path, char *to, size_t room)
{
    return ENSIO_RAW(SYS_readlinkat, AT_FDCWD, path, to, room);
}

static inline int64_t ensio_raw_position(int fd)
{
    return ENSIO_RAW(SYS_lseek, fd, 0L, SEEK_CUR);
}

/* Readable and writable memory, or NULL. */
static inline void *ensio_raw_map(uint64_t bytes, int flags, int fd, uint64_t offset)
{
    long at = syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, offset);
    return at == -1 ? NULL : (void *)at;
}

static inline void *ensio_raw_memory(uint64_t bytes)
{
    return ensio_raw_map(bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* Extends a mapping, at another address if necessary; NULL if that fails. */
static inline void *ensio_raw_grow(void *at, uint64_t bytes, uint64_t more)
{
    long grown = syscall(SYS_mremap, at, bytes, more, MREMAP_MAYMOVE);
    return grown == -1 ? NULL : (void *)grown;
}

static inline void ensio_raw_unmap(void *at, uint64_t bytes)
{
    syscall(SYS_munmap, at, bytes);
}

/* Gives the memory of all pages but the first back: they read as zeros. Without the right to, nothing happens. */
static inline void ensio_raw_empty(void *at, uint64_t bytes)
{
    if (bytes > 4096)
        (void)ENSIO_RAW(SYS_madvise, (uint8_t *)at + 4096, bytes - 4096, MADV_DONTNEED);
}

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* since Linux 5.14 */
#endif

/* Allocates disk blocks and memory for pages of a mapped file: 0, or minus an errno. Without this, a store to a page
 * for which the disk has no room would raise SIGBUS. If the kernel has no single call for it, each page is touched by a
 * call that returns EFAULT instead; the pages hold zeros. */
static inline int ensio_raw_populate(void *at, uint64_t bytes)
{
    struct timespec *page;
    const long done = ENSIO_RAW(SYS_madvise, at, bytes, MADV_POPULATE_WRITE);
    if (done != -EINVAL && done != -ENOSYS)
        return done == -EFAULT ? -ENOSPC : (int)done;
    for (uint64_t offset = 0; offset < bytes; offset += 4096) {
        page = (struct timespec *)(void *)((char *)at + offset);
        if (ENSIO_RAW(SYS_clock_gettime, CLOCK_MONOTONIC, page) != 0)
            return -ENOSPC;
        *page = (struct timespec){0};
    }
    return 0;
}

static inline uint32_t ensio_raw_pid(void)
{
    return (uint32_t)syscall(SYS_getpid);
}

#endif
