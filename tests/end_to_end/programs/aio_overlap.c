/* Requests of POSIX asynchronous I/O in unusual lives: aio_overlap FOLDER LIFE. Prints what the program found.
 *
 *   overlap  aio_write, work, aio_suspend: seconds in posts, waits and work
 *   fork     a child that writes, while requests of its parent are in flight. It makes no requests, because the C
 *            library's threads do not exist in it
 *   cancel   aio_cancel of requests in a queue: the number of cancelled and of completed ones
 *   kill     the process kills itself with requests in flight, after four were completed
 *   handler  aio_error and aio_return in a signal handler
 *   thread   posted by one thread, completed by another */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BLOCK (1 << 16)
#define REQUESTS 8
#define WORK_NS 20000000LL

static char buffer[BLOCK];
static struct aiocb blocks[64];
static int fd;
static double posting, waiting, working;

static long long now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void work(void)
{
    const long long start = now();
    while (now() - start < WORK_NS)
        ;
    working += (double)(now() - start) * 1e-9;
}

static void post(int number)
{
    blocks[number] = (struct aiocb){.aio_fildes = fd, .aio_buf = buffer, .aio_nbytes = BLOCK};
    blocks[number].aio_offset = (off_t)number * BLOCK;
    blocks[number].aio_sigevent.sigev_notify = SIGEV_NONE;
    const long long start = now();
    if (aio_write(&blocks[number]) != 0)
        exit(1);
    posting += (double)(now() - start) * 1e-9;
}

static void await(int number)
{
    const struct aiocb *list[] = {&blocks[number]};
    const long long start = now();
    errno = 77;
    if (aio_suspend(list, 1, NULL) != 0 || errno != 77)
        exit(1);
    waiting += (double)(now() - start) * 1e-9;
}

static ssize_t collect(int number)
{
    while (aio_error(&blocks[number]) == EINPROGRESS)
        usleep(100);
    errno = 77;
    const ssize_t result = aio_return(&blocks[number]);
    if (result >= 0 && errno != 77)
        exit(1);
    return result;
}

static void overlap(int first)
{
    for (int i = first; i < first + REQUESTS; i++) {
        post(i);
        work();
        await(i);
        if (collect(i) != BLOCK)
            exit(1);
    }
}

static void forks(void)
{
    for (int i = 0; i < 4; i++)
        post(i);
    if (fork() == 0) {
        _exit(pwrite(fd, buffer, BLOCK, 20 * BLOCK) != BLOCK);
    }
    for (int i = 0; i < 4; i++)
        collect(i);
    wait(NULL);
}

static void cancel(void)
{
    int cancelled = 0, completed = 0;
    for (int i = 0; i < 40; i++)
        post(i);
    aio_cancel(fd, NULL);
    for (int i = 0; i < 40; i++) {
        while (aio_error(&blocks[i]) == EINPROGRESS)
            usleep(100);
        const int error = aio_error(&blocks[i]);
        const ssize_t result = aio_return(&blocks[i]);
        cancelled += error == ECANCELED && result == -1;
        completed += error == 0 && result == BLOCK;
    }
    printf("%d %d\n", cancelled, completed);
}

static volatile sig_atomic_t handled;

static void handle(int number)
{
    const int error = errno;
    while (aio_error(&blocks[handled]) == EINPROGRESS)
        ;
    if (aio_return(&blocks[handled]) == BLOCK)
        handled++;
    errno = error;
}

static void handler(void)
{
    signal(SIGUSR1, handle);
    for (int i = 0; i < REQUESTS; i++)
        post(i);
    for (int i = 0; i < REQUESTS; i++)
        raise(SIGUSR1);
    printf("%d\n", (int)handled);
}

static void *collects(void *unused)
{
    char one;
    for (int i = 0; i < REQUESTS; i++) {
        await(i);
        collect(i);
        if (pread(fd, &one, 1, 0) != 1)
            exit(1);
    }
    return unused;
}

static void threads(void)
{
    pthread_t other;
    for (int i = 0; i < REQUESTS; i++)
        post(i);
    pthread_create(&other, NULL, collects, NULL);
    pthread_join(other, NULL);
}

int main(int count, char **arguments)
{
    if (count != 3 || chdir(arguments[1]) != 0)
        return 2;
    const char *life = arguments[2];
    fd = open("a.data", O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (strcmp(life, "overlap") == 0) {
        overlap(0);
        printf("%.9f %.9f %.9f\n", posting, waiting, working);
    } else if (strcmp(life, "fork") == 0) {
        forks();
    } else if (strcmp(life, "cancel") == 0) {
        cancel();
    } else if (strcmp(life, "kill") == 0) {
        for (int i = 0; i < 4; i++) {
            post(i);
            collect(i);
        }
        for (int i = 4; i < 10; i++)
            post(i);
        kill(getpid(), SIGKILL);
    } else if (strcmp(life, "handler") == 0) {
        handler();
    } else {
        threads();
    }
    return 4;
}
