/* program.c: a plain program that makes a fixed number of calls of 8 bytes; built once as it is (to be run untraced and
 * under preload libraries) and once by ensio-cc.
 *
 *   program CALL CALLS [THREADS] [hold]
 *
 * Each thread makes so many calls. Prints the thread CPU time of a call, the mean of the threads, and the CPU time of
 * the process until then, both in nanoseconds. If BENCH_FLOOR names a folder, each call is made between two readings of
 * the clock, and 48 bytes are stored into a growing shared mapping of a file in it: the floor, as
 * nothing that survives kill -9 can cost less. With "hold" it stays as it is until its standard input ends. `cyclic`:
 * pwrite at offsets that go round. `open`: an open and a close of the same file; `open-here`, `stat-here`: by a
 * relative path.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
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

enum { WINDOW_BYTES = 2 << 20, WARM_CALLS = 1000 };

static const char *floor_folder;
static _Thread_local struct event {
    uint64_t start, duration, rest[4];
} * next_event, *last_event;

static uint64_t ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return (uint64_t)clock_ns(CLOCK_MONOTONIC);
#endif
}

/* Each window lies behind the last one in a file of the thread, as in a spool; the kernel gives it its blocks. */
__attribute__((noinline)) static void next_window(void)
{
    static _Thread_local off_t length;
    static _Thread_local int fd = -1;
    if (fd < 0)
        fd = (int)syscall(SYS_openat, AT_FDCWD, floor_folder, O_TMPFILE | O_RDWR, 0600);
    if (fd < 0 || posix_fallocate(fd, length, WINDOW_BYTES) != 0)
        abort();
    if (last_event)
        munmap((char *)last_event - (WINDOW_BYTES / sizeof *last_event) * sizeof *last_event, WINDOW_BYTES);
    next_event = mmap(NULL, WINDOW_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, length);
    if (next_event == MAP_FAILED)
        abort();
    last_event = next_event + WINDOW_BYTES / sizeof *next_event;
    length += WINDOW_BYTES;
}

static inline void store(uint64_t start, uint64_t end, uint64_t i)
{
    if (next_event == last_event)
        next_window();
    *next_event++ = (struct event){start, end - start, {i, 8, 8, 1}};
}

#define LOOP(name, condition) \
    if (strcmp(call, name) == 0) { \
        if (floor_folder) { \
            for (long i = 0; i < most; i++) { \
                const uint64_t entered = ticks(); \
                const int sound = (condition); \
                store(entered, ticks(), (uint64_t)i); \
                if (!sound) \
                    abort(); \
            } \
        } else { \
            for (long i = 0; i < most; i++) \
                if (!(condition)) \
                    abort(); \
        } \
        known = 1; \
    }

static int open_and_close(const char *path)
{
    int fd = open(path, O_RDWR);
    return fd >= 0 && close(fd) == 0;
}

struct files {
    int null_fd, file_fd;
    const char *name;
    FILE *stream;
};

/* Makes `most` calls; returns whether there are such calls. */
static int run(const struct files *files, long most)
{
    char bytes[8] = "", page[4096];
    const char *const here = files->name + 5;
    struct stat found;
    int known = 0;
    LOOP("write", write(files->null_fd, bytes, 8) == 8)
    LOOP("pwrite", pwrite(files->null_fd, bytes, 8, i) == 8)
    LOOP("cyclic", pwrite(files->null_fd, bytes, 8, i % 7 * 4096) == 8)
    LOOP("pwrite-file", pwrite(files->file_fd, bytes, 8, 8 * (i % 1024)) == 8)
    LOOP("pread", pread(files->file_fd, page, sizeof page, i % 16 * 4096) == sizeof page)
    LOOP("lseek", lseek(files->file_fd, 8, SEEK_SET) == 8)
    LOOP("fwrite", fwrite(bytes, 1, 8, files->stream) == 8)
    LOOP("open", open_and_close(files->name))
    LOOP("open-here", open_and_close(here))
    LOOP("stat", stat(files->name, &found) == 0)
    LOOP("stat-here", stat(here, &found) == 0)
    return known;
}

static int64_t loop(void)
{
    char name[] = "/tmp/ensio-bench.XXXXXX";
    struct files files = {.null_fd = open("/dev/null", O_WRONLY), .file_fd = mkstemp(name), .name = name};
    files.stream = fopen("/dev/null", "w");
    if (files.null_fd < 0 || files.file_fd < 0 || !files.stream || chdir("/tmp") != 0 ||
        ftruncate(files.file_fd, 1 << 20) != 0)
        abort();
    run(&files, calls < WARM_CALLS ? calls : WARM_CALLS); /* what happens once is measured in life_cost.py */
    int64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    const int known = run(&files, calls);
    int64_t took = clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
    if (unlink(name) != 0)
        abort();
    if (!known)
        exit(2);
    fclose(files.stream);
    close(files.null_fd);
    close(files.file_fd);
    return took;
}

static int64_t together;

static void *work(void *unused)
{
    __atomic_add_fetch(&together, loop(), __ATOMIC_RELAXED);
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
    floor_folder = getenv("BENCH_FLOOR");
    int threads = count > 3 ? atoi(arguments[3]) : 0;
    pthread_t thread;
    pthread_barrier_init(&done, NULL, (unsigned)threads + 1);
    for (int i = 0; i < threads; i++)
        if (pthread_create(&thread, NULL, work, NULL) != 0)
            abort();
    __atomic_add_fetch(&together, loop(), __ATOMIC_RELAXED);
    pthread_barrier_wait(&done);
    const double took = (double)together / (threads + 1);
    printf("%.2f %lld\n", calls ? took / (double)calls : 0.0, (long long)clock_ns(CLOCK_PROCESS_CPUTIME_ID));
    fflush(stdout);
    if (count > 4 && strcmp(arguments[4], "hold") == 0)
        while (getchar() != EOF)
            ;
    return 0;
}
