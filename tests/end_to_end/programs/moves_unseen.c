/* Moves bytes where no wrapper sees it, or in small writes that all are seen: moves_unseen FILE KIND MiB [exit]. */
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <wchar.h>

#define MIB (1 << 20)
extern ssize_t __write(int fd, const void *bytes, size_t length);
extern int io_uring_setup(unsigned entries, struct io_uring_params *how) __attribute__((weak)); /* of liburing */
static char block[MIB] __attribute__((aligned(4096)));

static void by_libaio(int fd, long at)
{
    static aio_context_t context;
    struct iocb request = {.aio_lio_opcode = IOCB_CMD_PWRITE, .aio_fildes = (unsigned)fd, .aio_nbytes = MIB};
    struct iocb *requests[] = {&request};
    struct io_event event;
    request.aio_buf = (unsigned long)block;
    request.aio_offset = at;
    if (!context) {
        mmap(NULL, MIB, PROT_READ, MAP_SHARED, fd, 1); /* fails */
        syscall(SYS_io_setup, 8, &context);
    }
    syscall(SYS_io_submit, context, 1, requests);
    syscall(SYS_io_getevents, context, 1, 1, &event, NULL);
}

/* A ring that is there for the time of three samples, or for a moment, and not at the end. */
static void by_io_uring(int fd, long all, int lasts)
{
    struct io_uring_params how = {0};
    const int ring = lasts ? (int)syscall(SYS_io_uring_setup, 8, &how) : io_uring_setup(8, &how);
    const size_t bytes = how.sq_off.array + 8 * sizeof(unsigned);
    char *queue = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    struct io_uring_sqe *entry = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
    if (ring < 0 || queue == MAP_FAILED || entry == MAP_FAILED)
        exit(77);
    *entry = (struct io_uring_sqe){.opcode = IORING_OP_WRITE, .fd = fd, .len = MIB, .addr = (unsigned long)block};
    for (unsigned long at = 0; at < (unsigned long)all; at += MIB) {
        entry->off = at;
        ((unsigned *)(queue + how.sq_off.array))[*(unsigned *)(queue + how.sq_off.tail) % how.sq_entries] = 0;
        __atomic_fetch_add((unsigned *)(queue + how.sq_off.tail), 1, __ATOMIC_RELEASE);
        if (syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1)
            exit(77);
    }
    for (int i = 0; lasts && i < 320; i++) {
        pwrite(fd, block, 1, 0);
        usleep(10000);
    }
    munmap(entry, 4096);
    munmap(queue, bytes);
    syscall(SYS_close, ring);
}

int main(int count, char **words)
{
    const char *kind = words[2];
    const long all = atol(words[3]) * MIB;
    const int fd = open(words[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
    memset(block, 1, sizeof block);
    if (strcmp(kind, "sparse") == 0) { /* a byte in each page */
        for (long at = 0; at < all; at += 4096)
            pwrite(fd, block, 1, at);
        return 0;
    }
    if (strcmp(kind, "pipe") == 0) {
        int ends[2];
        pipe(ends);
        for (long at = 0; at < all; at += 4096)
            if (write(ends[1], block, 4096) != 4096 || read(ends[0], block, 4096) != 4096)
                return 1;
        return 0;
    }
    FILE *stream = strcmp(kind, "wide") ? NULL : fopen(words[1], "w");
    for (long at = 0; stream && at < all; at++)
        fputwc(L'x', stream);
    ftruncate(fd, all);
    char *mapped = strcmp(kind, "mmap") ? NULL : mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (strcmp(kind, "io_uring") == 0 || strcmp(kind, "liburing") == 0) {
        by_io_uring(fd, all, strcmp(kind, "io_uring") == 0);
        return 0;
    }
    for (long at = 0; at < all; at += MIB) {
        if (strcmp(kind, "raw") == 0)
            syscall(SYS_write, fd, block, MIB);
        else if (strcmp(kind, "alias") == 0)
            __write(fd, block, MIB);
        else if (strcmp(kind, "libaio") == 0)
            by_libaio(fd, at);
        else if (mapped)
            memcpy(mapped + at, block, MIB);
    }
    if (count > 4)
        syscall(SYS_exit_group, 0);
    return 0;
}
