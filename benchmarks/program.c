/* program.c: a plain program that makes a fixed number of calls of 8 bytes; built once as it is (to be run untraced and
 * under preload libraries) and once by ensio-cc.
 *
 *   program CALL CALLS [THREADS] [hold]
 *
 * Each thread makes so many calls. Prints the thread CPU time of a call, and the CPU time of the process until then,
 * both in nanoseconds; with "hold" it stays as it is until its standard input ends. `cyclic`: pwrite at offsets that go
 * round. `open`: an open and a close of the same file; `open-here`, `stat-here`: by a relative path.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char *call;
static long calls;
static pthread_barrier_t done;

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

#define LOOP(name, condition) \
    if (strcmp(call, name) == 0) { \
        for (long i = 0; i < calls; i++) \
            if (!(condition)) \
                abort(); \
        known = 1; \
    }

static int open_and_close(const char *path)
{
    int fd = open(path, O_RDWR);
    return fd >= 0 && close(fd) == 0;
}

static int64_t loop(void)
{
    char bytes[8] = "", name[] = "/tmp/ensio-bench.XXXXXX";
    int null_fd = open("/dev/null", O_WRONLY), file_fd = mkstemp(name), known = 0;
    FILE *stream = fopen("/dev/null", "w");
    struct stat found;
    if (null_fd < 0 || file_fd < 0 || !stream || chdir("/tmp") != 0)
        abort();
    const char *const here = name + 5;
    int64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    LOOP("write", write(null_fd, bytes, 8) == 8)
    LOOP("pwrite", pwrite(null_fd, bytes, 8, i) == 8)
    LOOP("cyclic", pwrite(null_fd, bytes, 8, i % 7 * 4096) == 8)
    LOOP("lseek", lseek(file_fd, 8, SEEK_SET) == 8)
    LOOP("fwrite", fwrite(bytes, 1, 8, stream) == 8)
    LOOP("open", open_and_close(name))
    LOOP("open-here", open_and_close(here))
    LOOP("stat", stat(name, &found) == 0)
    LOOP("stat-here", stat(here, &found) == 0)
    if (unlink(name) != 0)
        abort();
    if (!known)
        exit(2);
    int64_t took = clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
    fclose(stream);
    close(null_fd);
    close(file_fd);
    return took;
}

static void *work(void *unused)
{
    loop();
    pthread_barrier_wait(&done);
    pthread_barrier_wait(&done); /* until main is released */
    return unused;
}

int main(int count, char **arguments)
{
    if (count < 3)
        return 2;
    call = arguments[1];
    calls = atol(arguments[2]);
    int threads = count > 3 ? atoi(arguments[3]) : 0;
    pthread_t thread;
    pthread_barrier_init(&done, NULL, (unsigned)threads + 1);
    for (int i = 0; i < threads; i++)
        if (pthread_create(&thread, NULL, work, NULL) != 0)
            abort();
    int64_t took = loop();
    pthread_barrier_wait(&done);
    printf("%.2f %lld\n", calls ? (double)took / (double)calls : 0.0, (long long)clock_ns(CLOCK_PROCESS_CPUTIME_ID));
    fflush(stdout);
    if (count > 4 && strcmp(arguments[4], "hold") == 0)
        while (getchar() != EOF)
            ;
    return 0;
}
