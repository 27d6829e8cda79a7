#define _GNU_SOURCE
#include "loops.h"

#include "measure.h"

#include <ensio/event.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The program is linked by ensio-cc like any other. Loops that are not recorded call the real function by the name that
 * --wrap gives it. */
extern ssize_t __real_write(int fd, const void *from, size_t bytes);
extern ssize_t __real_pwrite(int fd, const void *from, size_t bytes, off_t at);
extern off_t __real_lseek(int fd, off_t to, int whence);
extern int __real_open(const char *path, int flags, ...);
extern int __real_close(int fd);
extern int __real_stat(const char *path, struct stat *to);
extern size_t __real_fwrite(const void *from, size_t size, size_t count, FILE *stream);

#ifdef PADDING /* moves everything that the linker places after this file, above all the recorder */
#define QUOTED_AS_IS(number) #number
#define QUOTED(number) QUOTED_AS_IS(number)
__asm__(".text\n.skip " QUOTED(PADDING) ", 0x90\n");
#endif

enum { WINDOW_EVENTS = 1 << 20 };

/* Each thread has separate descriptors, so that threads share only what the recorder shares. */
static _Thread_local int null_fd = -1, file_fd = -1;
static _Thread_local FILE *null_stream;
static _Thread_local char floor_path[4096], data_path[4000];
static _Thread_local struct stat found;
static _Thread_local struct ensio_event *window;
static _Thread_local size_t next_event;
static _Thread_local off_t floor_bytes;

/* The floor's file grows as a spool does: events touch its pages for the first time, and the pages are new to the
 * process. (A file that is truncated and filled again gets the same pages back, and a virtual machine still has their
 * memory; that floor is lower by the host's cost of finding memory.) */
static void fresh_window(void)
{
    size_t bytes = WINDOW_EVENTS * sizeof *window;
    if (window)
        munmap(window, bytes);
    int fd = open(floor_path, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || posix_fallocate(fd, floor_bytes, (off_t)bytes) != 0)
        fail(floor_path);
    window = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, floor_bytes);
    if (window == MAP_FAILED)
        fail("mmap");
    close(fd);
    floor_bytes += (off_t)bytes;
    next_event = 0;
}

#define LOOP(call, expected) \
    static const char bytes[8]; \
    (void)bytes; \
    for (int i = 0; i < calls; i++) \
        if ((long)(call) != (expected)) \
            fail(#call);

#define LOOPS(name, symbol, arguments, expected) \
    static void untraced_##name(int calls) \
    { \
        LOOP(__real_##symbol arguments, expected) \
    } \
    static long one_at_floor_##name(const char *bytes, int i) \
    { \
        uint64_t entered = ticks(); \
        long moved = (long)__real_##symbol arguments; \
        uint64_t left = ticks(); \
        window[next_event++] = (struct ensio_event){entered, left - entered, i, 8, moved, 1, 0, 8, 0, 0}; \
        __asm__ volatile("" : : "r"(bytes) : "memory"); \
        return moved; \
    } \
    static void at_floor_##name(int calls) \
    { \
        LOOP(one_at_floor_##name(bytes, i), expected) \
    } \
    static void recorded_##name(int calls) \
    { \
        LOOP(symbol arguments, expected) \
    }

LOOPS(write, write, (null_fd, bytes, 8), 8)
LOOPS(file_write, write, (file_fd, bytes, 8), 8)
LOOPS(pwrite, pwrite, (null_fd, bytes, 8, i), 8)
LOOPS(lseek, lseek, (file_fd, 8, SEEK_SET), 8)
LOOPS(fwrite, fwrite, (bytes, 1, 8, null_stream), 8)
LOOPS(stat, stat, (data_path, &found), 0)

/* Two calls: an open and a close. */
static void untraced_open(int calls)
{
    for (int i = 0; i < calls; i++)
        if (__real_close(__real_open(data_path, O_RDWR)) != 0)
            fail(data_path);
}

static void at_floor_open(int calls)
{
    for (int i = 0; i < calls; i++) {
        uint64_t entered = ticks();
        int fd = __real_open(data_path, O_RDWR);
        uint64_t left = ticks();
        window[next_event++] = (struct ensio_event){entered, left - entered, i, 0, 0, 1, 0, 1, 0, 0};
        entered = ticks();
        int result = __real_close(fd);
        left = ticks();
        window[next_event++] = (struct ensio_event){entered, left - entered, i, 0, 0, 1, 0, 4, 0, 0};
        if (result != 0)
            fail(data_path);
    }
}

static void recorded_open(int calls)
{
    for (int i = 0; i < calls; i++)
        if (close(open(data_path, O_RDWR)) != 0)
            fail(data_path);
}

const struct loops all_loops[] = {
    {"write", "/dev/null", untraced_write, at_floor_write, recorded_write},
    {"pwrite", "/dev/null", untraced_pwrite, at_floor_pwrite, recorded_pwrite},
    {"lseek", "a file", untraced_lseek, at_floor_lseek, recorded_lseek},
    {"fwrite", "/dev/null, buffered", untraced_fwrite, at_floor_fwrite, recorded_fwrite},
    {"open", "a file, with a close", untraced_open, at_floor_open, recorded_open},
    {"stat", "a file", untraced_stat, at_floor_stat, recorded_stat},
    {"file_write", "a file", untraced_file_write, at_floor_file_write, recorded_file_write},
};
const int loops_count = sizeof all_loops / sizeof *all_loops;

const struct loops *loops_named(const char *name)
{
    for (int i = 0; i < loops_count; i++)
        if (strcmp(all_loops[i].name, name) == 0)
            return &all_loops[i];
    return NULL;
}

void loops_begin(const char *folder)
{
    snprintf(data_path, sizeof data_path, "%s/data.XXXXXX", folder);
    file_fd = mkstemp(data_path);
    if (file_fd < 0)
        fail(data_path);
    snprintf(floor_path, sizeof floor_path, "%s.floor", data_path);
    null_fd = open("/dev/null", O_WRONLY);
    null_stream = fopen("/dev/null", "w");
    if (null_fd < 0 || !null_stream)
        fail("/dev/null");
    fresh_window();
}

void loops_end(void)
{
    munmap(window, WINDOW_EVENTS * sizeof *window);
    window = NULL;
    floor_bytes = 0;
    unlink(floor_path);
    unlink(data_path);
    close(null_fd);
    close(file_fd);
    fclose(null_stream);
}

void loops_rewind(int calls)
{
    lseek(file_fd, 0, SEEK_SET);
    if (next_event + 2 * (size_t)calls > WINDOW_EVENTS)
        fresh_window();
}
