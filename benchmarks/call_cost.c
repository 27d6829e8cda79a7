/* call_cost.c: what recording adds to a call of the smallest size that is a system call at all: pwrite of 8 bytes to
 * /dev/null.
 *
 * Three loops run in turn, in short rounds, so that a change of the machine's speed meets all three: the call untraced; the
 * floor (the call, two clock readings and one 48-byte store into a reserved, file-backed shared mapping: nothing that
 * survives kill -9 can cost less); and the call recorded by ensio. Thread CPU time; the medians over rounds of the costs
 * added, in pairs.
 *
 * After them, the same of an fwrite of 8 bytes into a stream's buffer, where little but the recording costs anything.
 *
 * The program is linked by ensio-cc like any other; the loops that are not recorded call the function behind the wrapper by
 * the name that --wrap gives it.
 */
#include <ensio/event.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

extern ssize_t __real_pwrite(int fd, const void *from, size_t bytes, off_t at);
extern size_t __real_fwrite(const void *from, size_t size, size_t count, FILE *stream);

enum { ROUND_CALLS = 20000, WINDOW_EVENTS = 1 << 20, MOST_ROUNDS = 1000 };

static struct ensio_event *window;
static size_t next_event;
static char floor_path[4096];
static int null_fd;
static FILE *null_stream;

static double thread_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void fail(const char *what)
{
    perror(what);
    exit(2);
}

/* The floor's mapping is as fresh as the recorder's windows: its pages are touched for the first time by the events. */
static void fresh_window(void)
{
    size_t bytes = WINDOW_EVENTS * sizeof *window;
    if (window)
        munmap(window, bytes);
    int fd = open(floor_path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || posix_fallocate(fd, 0, (off_t)bytes) != 0)
        fail(floor_path);
    window = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (window == MAP_FAILED)
        fail("mmap");
    close(fd);
    next_event = 0;
}

static double untraced(void)
{
    char bytes[8] = "";
    double start = thread_ns();
    for (int i = 0; i < ROUND_CALLS; i++)
        if (__real_pwrite(null_fd, bytes, sizeof bytes, i) != sizeof bytes)
            fail("pwrite");
    return (thread_ns() - start) / ROUND_CALLS;
}

static double at_floor(void)
{
    char bytes[8] = "";
    if (next_event + ROUND_CALLS > WINDOW_EVENTS)
        fresh_window();
    double start = thread_ns();
    for (int i = 0; i < ROUND_CALLS; i++) {
        uint64_t entered = __rdtsc();
        ssize_t moved = __real_pwrite(null_fd, bytes, sizeof bytes, i);
        uint64_t left = __rdtsc();
        struct ensio_event *event = &window[next_event++];
        *event = (struct ensio_event){entered, left - entered, i, sizeof bytes, moved, 1, 8, 0, 0};
        __asm__ volatile("" : : : "memory");
    }
    return (thread_ns() - start) / ROUND_CALLS;
}

static double recorded(void)
{
    char bytes[8] = "";
    double start = thread_ns();
    for (int i = 0; i < ROUND_CALLS; i++)
        if (pwrite(null_fd, bytes, sizeof bytes, i) != sizeof bytes)
            fail("pwrite");
    return (thread_ns() - start) / ROUND_CALLS;
}

static double untraced_stream(void)
{
    char bytes[8] = "";
    double start = thread_ns();
    for (int i = 0; i < ROUND_CALLS; i++)
        if (__real_fwrite(bytes, 1, sizeof bytes, null_stream) != sizeof bytes)
            fail("fwrite");
    return (thread_ns() - start) / ROUND_CALLS;
}

static double recorded_stream(void)
{
    char bytes[8] = "";
    double start = thread_ns();
    for (int i = 0; i < ROUND_CALLS; i++)
        if (fwrite(bytes, 1, sizeof bytes, null_stream) != sizeof bytes)
            fail("fwrite");
    return (thread_ns() - start) / ROUND_CALLS;
}

static int ascending(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, ascending);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

int main(int count, char **arguments)
{
    int rounds = count > 1 ? atoi(arguments[1]) : 200;
    static double plain[MOST_ROUNDS], floor_added[MOST_ROUNDS], ensio_added[MOST_ROUNDS], ratio[MOST_ROUNDS];
    static double stream[MOST_ROUNDS], stream_added[MOST_ROUNDS];
    const char *folder = getenv("ENSIO_DIR");
    if (rounds < 1 || rounds > MOST_ROUNDS || !folder) {
        fprintf(stderr, "usage: ENSIO_DIR=FOLDER ENSIO_EXCLUDE= %s [rounds, 1 to %d]\n", arguments[0], MOST_ROUNDS);
        return 2;
    }
    snprintf(floor_path, sizeof floor_path, "%s/floor.events", folder);
    null_fd = open("/dev/null", O_WRONLY);
    null_stream = fopen("/dev/null", "w");
    if (null_fd < 0 || !null_stream)
        fail("/dev/null");
    fresh_window();
    untraced(), at_floor(), recorded();
    for (int i = 0; i < rounds; i++) {
        plain[i] = untraced();
        floor_added[i] = at_floor() - plain[i];
        ensio_added[i] = recorded() - untraced();
        ratio[i] = ensio_added[i] / floor_added[i];
    }
    untraced_stream(), recorded_stream();
    for (int i = 0; i < rounds; i++) {
        stream[i] = untraced_stream();
        stream_added[i] = recorded_stream() - stream[i];
    }
    unlink(floor_path);
    double floor_ns = median(floor_added, rounds), ensio_ns = median(ensio_added, rounds);
    printf("8-byte pwrite to /dev/null, thread CPU time, medians of %d alternated rounds of %d calls\n", rounds, ROUND_CALLS);
    printf("%-34s %8.1f ns\n", "untraced, the whole call", median(plain, rounds));
    printf("%-34s %8.1f ns\n", "added by the floor", floor_ns);
    printf("%-34s %8.1f ns\n", "added by ensio", ensio_ns);
    printf("%-34s %8.2f    (median of pairs %.2f; goal: at most 2)\n", "ensio : floor", ensio_ns / floor_ns, median(ratio, rounds));
    printf("8-byte fwrite to /dev/null, buffered\n");
    printf("%-34s %8.1f ns\n", "untraced, the whole call", median(stream, rounds));
    printf("%-34s %8.1f ns\n", "added by ensio", median(stream_added, rounds));
    return 0;
}
