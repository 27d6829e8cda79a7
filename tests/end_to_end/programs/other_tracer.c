/* Another tracer, as Darshan is one: it counts calls and their bytes by function, and writes what it counted to the
 * file OTHER_TRACER_LOG when a process ends. Like Darshan it writes its log by the ordinary functions, gives a forked
 * child counts that begin at 0, and preloaded asks a stream where it stands after a seek (linked, this looks like a
 * call of the program's).
 *
 * Compiled with -shared it is preloaded, and finds the next function by RTLD_NEXT; with -DLINKED it goes into a
 * program, with the options of --wrap that tests/end_to_end/test_with_another_tracer.py derives from the lines below.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct counter {
    const char *name;
    long calls, bytes;
    struct counter *next;
};
static struct counter *counters;
static int over; /* what comes now is our own */

static void count(struct counter *counter, const char *name, long bytes)
{
    if (__atomic_load_n(&over, __ATOMIC_RELAXED))
        return;
    const char *none = NULL;
    if (__atomic_compare_exchange_n(&counter->name, &none, name, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        counter->next = __atomic_load_n(&counters, __ATOMIC_ACQUIRE);
        while (!__atomic_compare_exchange_n(&counters, &counter->next, counter, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            ;
    }
    __atomic_fetch_add(&counter->calls, 1, __ATOMIC_RELAXED);
    if (bytes > 0)
        __atomic_fetch_add(&counter->bytes, bytes, __ATOMIC_RELAXED);
}

#ifdef LINKED
#define DECLARE(type, symbol, parameters) \
    extern type real_##symbol parameters __asm__("__real_" #symbol); \
    type other_##symbol parameters __asm__("__wrap_" #symbol);
#define REAL(symbol) real_##symbol
#define ASK_AFTER_SEEK(stream) 0
#else
#define DECLARE(type, symbol, parameters) \
    typedef type type_##symbol parameters; \
    static void *real_##symbol; \
    type other_##symbol parameters __asm__(#symbol);
#define REAL(symbol) ((type_##symbol *)next(&real_##symbol, #symbol))
#define ASK_AFTER_SEEK(stream) (ftell(stream) < 0)
static void *next(void **real, const char *symbol)
{
    if (!*real)
        *real = dlsym(RTLD_NEXT, symbol);
    return *real;
}
#endif

#define CALL(symbol, type, parameters, arguments, bytes) \
    DECLARE(type, symbol, parameters) \
    type other_##symbol parameters \
    { \
        static struct counter counter; \
        type result = REAL(symbol) arguments; \
        count(&counter, #symbol, (long)(bytes)); \
        return result; \
    }

#define OPEN(symbol) \
    DECLARE(int, symbol, (const char *path, int flags, ...)) \
    int other_##symbol(const char *path, int flags, ...) \
    { \
        static struct counter counter; \
        va_list more; \
        va_start(more, flags); \
        mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0; \
        va_end(more); \
        int result = REAL(symbol)(path, flags, mode); \
        count(&counter, #symbol, 0); \
        return result; \
    }

#define SEEK(symbol, offset_type) \
    DECLARE(int, symbol, (FILE * stream, offset_type to, int whence)) \
    int other_##symbol(FILE *stream, offset_type to, int whence) \
    { \
        static struct counter counter; \
        int result = REAL(symbol)(stream, to, whence); \
        count(&counter, #symbol, ASK_AFTER_SEEK(stream)); \
        return result; \
    }

OPEN(open)
OPEN(open64)
CALL(creat, int, (const char *path, mode_t mode), (path, mode), 0)
CALL(read, ssize_t, (int fd, void *to, size_t bytes), (fd, to, bytes), result)
CALL(write, ssize_t, (int fd, const void *from, size_t bytes), (fd, from, bytes), result)
CALL(pread, ssize_t, (int fd, void *to, size_t bytes, off_t at), (fd, to, bytes, at), result)
CALL(pread64, ssize_t, (int fd, void *to, size_t bytes, off64_t at), (fd, to, bytes, at), result)
CALL(pwrite, ssize_t, (int fd, const void *from, size_t bytes, off_t at), (fd, from, bytes, at), result)
CALL(pwrite64, ssize_t, (int fd, const void *from, size_t bytes, off64_t at), (fd, from, bytes, at), result)
CALL(lseek, off_t, (int fd, off_t to, int whence), (fd, to, whence), 0)
CALL(close, int, (int fd), (fd), 0)
CALL(fopen, FILE *, (const char *path, const char *mode), (path, mode), 0)
CALL(fopen64, FILE *, (const char *path, const char *mode), (path, mode), 0)
CALL(fread, size_t, (void *to, size_t size, size_t items, FILE *stream), (to, size, items, stream), result *size)
CALL(fwrite, size_t, (const void *from, size_t size, size_t items, FILE *stream), (from, size, items, stream),
     result *size)
CALL(fclose, int, (FILE * stream), (stream), 0)
SEEK(fseek, long)

static void begin_anew(void)
{
    for (struct counter *counter = counters; counter; counter = counter->next)
        counter->calls = counter->bytes = 0;
}

__attribute__((constructor)) static void begin(void)
{
    pthread_atfork(NULL, NULL, begin_anew);
}

__attribute__((destructor)) static void end(void)
{
    char line[200];
    const char *path = getenv("OTHER_TRACER_LOG");
    __atomic_store_n(&over, 1, __ATOMIC_SEQ_CST);
    const int fd = path ? open(path, O_CREAT | O_WRONLY | O_APPEND, 0600) : -1;
    for (struct counter *counter = counters; fd >= 0 && counter; counter = counter->next) {
        const int length = snprintf(line, sizeof line, "%s %ld %ld\n", counter->name, counter->calls, counter->bytes);
        if (counter->calls && write(fd, line, (size_t)length) != length)
            abort();
    }
    if (fd >= 0)
        close(fd);
}
