/* What an application does, for two tracers at once: its own files in four threads, streams, a child that was forked
 * and one that another program becomes, descriptors that are closed and come back; and says what it found. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4
#define CALLS 200

static char block[4096];

static unsigned long sum_of(const char *bytes, size_t count)
{
    unsigned long sum = 5381;
    while (count--)
        sum = sum * 33 + (unsigned char)*bytes++;
    return sum;
}

static void *work(void *number)
{
    char path[40], back[sizeof block];
    unsigned long sum = 0;
    snprintf(path, sizeof path, "thread.%ld", (long)number);
    int fd = open(path, O_CREAT | O_RDWR | O_TRUNC, 0600);
    for (int i = 0; i < CALLS; i++)
        sum += (unsigned long)pwrite(fd, block, 100 + (size_t)i, i * 300);
    for (int i = 0; i < CALLS; i++)
        sum += (unsigned long)pread(fd, back, 100 + (size_t)i, i * 300) + sum_of(back, 100);
    close(fd);
    return (void *)sum;
}

static unsigned long streams(void)
{
    char back[1000];
    FILE *stream = fopen("stream", "w+");
    for (int i = 0; i < CALLS; i++)
        fwrite(block, 1, 37, stream);
    fseek(stream, 11, SEEK_SET);
    size_t count = fread(back, 1, sizeof back, stream);
    fseek(stream, 0, SEEK_END);
    long length = ftell(stream);
    fclose(stream);
    return sum_of(back, count) + (unsigned long)length;
}

int main(int count, char **arguments)
{
    pthread_t threads[THREADS];
    unsigned long sum = 0;
    for (size_t i = 0; i < sizeof block; i++)
        block[i] = (char)(i * i >> 3);
    if (count > 1) { /* the program that the second child has become */
        int fd = open("become", O_CREAT | O_WRONLY, 0600);
        return fd >= 0 && write(fd, block, 50) == 50 && close(fd) == 0 ? 3 : 4;
    }
    int fd = open("plain", O_CREAT | O_RDWR, 0600);
    for (int i = 0; i < CALLS; i++)
        sum += (unsigned long)write(fd, block, 64);
    lseek(fd, 0, SEEK_SET);
    for (int i = 0; i < CALLS; i++)
        sum += (unsigned long)read(fd, block + 2048, 64);
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        sum += (unsigned long)result;
    }
    sum += streams();
    fflush(stdout);
    int statuses[2] = {0};
    if (fork() == 0)
        exit((int)((unsigned long)work((void *)9L) + streams()) & 63);
    wait(&statuses[0]);
    if (fork() == 0) {
        execl("/proc/self/exe", "become", "again", (char *)NULL);
        _exit(99);
    }
    wait(&statuses[1]);
    close(fd);
    if (open("missing", O_RDONLY) >= 0 || close(fd) == 0)
        return 1;
    printf("%lu %d %d\n", sum, WEXITSTATUS(statuses[0]), WEXITSTATUS(statuses[1]));
    return 7;
}
