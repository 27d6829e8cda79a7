/* Makes POSIX asynchronous I/O in the folder that it is given. For each request it prints the event that is to be
 * recorded: call, offset, bytes asked for, result, errno; and between which moments (ns since 1970) it was submitted,
 * and by when it was seen complete. Built also with 64-bit names. The second argument: "leave" asks for no results. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char buffer[8][4096];
static int fd;

static long long now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static struct aiocb request(int number, long offset, size_t bytes)
{
    struct aiocb block = {.aio_fildes = fd, .aio_buf = buffer[number], .aio_nbytes = bytes, .aio_offset = offset};
    block.aio_sigevent.sigev_notify = SIGEV_NONE;
    return block;
}

/* The result is asked for long after the request was seen complete. */
static void finish(const char *call, struct aiocb *block, long long before, long long after)
{
    int error;
    while ((error = aio_error(block)) == EINPROGRESS)
        usleep(100);
    long long seen = now();
    usleep(30000);
    errno = 77;
    ssize_t result = aio_return(block);
    if (errno != 77)
        exit(1);
    int syncs = strcmp(call, "aio_fsync") == 0;
    printf("%s %lld %zu %zd %d %lld %lld %lld\n", call, syncs ? -1LL : (long long)block->aio_offset,
           syncs ? 0 : block->aio_nbytes, result, error, before, after, seen);
}

static void one(const char *call, struct aiocb block)
{
    long long before = now();
    int refused = strcmp(call, "aio_read") == 0    ? aio_read(&block)
                  : strcmp(call, "aio_write") == 0 ? aio_write(&block)
                                                   : aio_fsync(O_SYNC, &block);
    if (refused)
        exit(1);
    finish(call, &block, before, now());
}

static void list(int how)
{
    struct aiocb blocks[4] = {request(0, 0, 4096), request(1, 9000, 100), request(2, 8192, 4000), request(3, 0, 0)};
    struct aiocb *all[5];
    const int opcodes[] = {LIO_READ, LIO_WRITE, LIO_READ, LIO_NOP};
    for (int i = 0; i < 4; i++) {
        blocks[i].aio_lio_opcode = opcodes[i];
        all[i] = &blocks[i];
    }
    all[4] = NULL;
    long long before = now();
    if (lio_listio(how, all, 5, NULL) != 0)
        exit(1);
    long long after = now();
    const struct aiocb *first[] = {&blocks[0], NULL};
    if (how == LIO_NOWAIT && aio_suspend(first, 2, NULL) != 0)
        exit(1);
    finish("aio_read", &blocks[0], before, after);
    finish("aio_write", &blocks[1], before, after);
    finish("aio_read", &blocks[2], before, after);
}

static void leave(void)
{
    static struct aiocb blocks[100];
    for (int i = 0; i < 100; i++) {
        blocks[i] = request(0, i * 4096L, 4096);
        if (aio_write(&blocks[i]) != 0)
            exit(1);
    }
    for (int i = 0; i < 100; i++)
        while (aio_error(&blocks[i]) == EINPROGRESS)
            usleep(100);
    for (int i = 0; i < 10; i++) /* used again, and asked for */
        one("aio_write", request(1, 0, 10));
    if (fork() == 0) /* has no requests: they are its parent's */
        _exit(write(fd, "child", 5) != 5);
    wait(NULL);
}

int main(int count, char **arguments)
{
    if (count != 3 || chdir(arguments[1]) != 0)
        return 2;
    fd = open("a.data", O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (strcmp(arguments[2], "leave") == 0) {
        leave();
        return 4;
    }
    one("aio_write", request(0, 0, 4096));
    one("aio_write", request(0, 4096, 4096));
    one("aio_read", request(1, 100, 1000));
    one("aio_read", request(1, 8000, 1000)); /* over the end of the file */
    one("aio_fsync", request(0, 0, 0));
    list(LIO_WAIT);
    list(LIO_NOWAIT);
    int kept = fd, zeros = open("/dev/zero", O_RDWR);
    struct aiocb left_out = request(0, 0, 100);
    left_out.aio_fildes = zeros;
    aio_read(&left_out);
    while (aio_error(&left_out) == EINPROGRESS)
        usleep(100);
    aio_return(&left_out);
    fd = open("a.data", O_RDONLY);
    one("aio_write", request(0, 0, 5)); /* not open for writing: fails when it is carried out */
    struct aiocb refused = request(0, 0, 30);
    refused.aio_reqprio = 1 << 20;
    long long before = now();
    int result = aio_read(&refused), error = errno;
    printf("aio_read 0 30 %d %d %lld %lld %lld\n", result, error, before, now(), now());
    struct aiocb *single[] = {&refused};
    if (lio_listio(12345, single, 1, NULL) != -1 || errno != EINVAL) /* no request of it is looked at */
        return 1;
    before = now();
    result = lio_listio(LIO_WAIT, single, 1, NULL);
    error = aio_error(&refused);
    printf("aio_read 0 30 %zd %d %lld %lld %lld\n", aio_return(&refused), error, before, now(), now());
    if (result != -1)
        return 1;
    fd = kept;
    return 4;
}
