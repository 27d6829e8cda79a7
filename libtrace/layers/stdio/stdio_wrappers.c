/* stdio_wrappers.c: the wrappers of the calls on streams, generated from their table; compiled once for --wrap and once
 * for preload.
 *
 * No wrapper sees libc's calls below them (open, read, write), except those of C++ streams and of static libraries. The
 * wrappers do not change a stream's lock, buffer or orientation. */
#include "other_tracers.h"
#include "stdio.h"

#include <calls/calls.h>
#include <layers/posix/posix.h>
#include <layers/program_memory.h>
#include <layers/recording.h>
#include <layers/wrapping.h>
#include <core/recorder.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>

enum { OP_open, OP_close, OP_read, OP_write, OP_seek, OP_sync, OP_meta };
enum {
#define CALL(number, call, op) CALL_##call = (number), OP_OF_##call = OP_##op,
#include <calls/stdio.def>
};
#undef CALL

#define ITEMS ensio_items_bytes(size, count)
#define ITEMS_MOVED (result || !bytes ? (int64_t)(result * size) : -1)
#define LINE_MOVED (result ? (int64_t)strlen(result) : -1)
#define ONE_MOVED (result == EOF ? -1 : 1)
/* The word -1 equals EOF. */
#define WORD_MOVED (result == EOF && (feof_unlocked(stream) || ferror_unlocked(stream)) ? -1 : (int64_t)sizeof(int))
#define ALL_MOVED (result == EOF ? -1 : (int64_t)bytes)
#define AS_MOVED (result < 0 ? 0 : result)
#define SCANNED (result == EOF ? -1 : 0)

#define EMPTIES(call) ((int)OP_OF_##call > (int)OP_write && (int)CALL_##call != (int)CALL_ftell)

/* Before a call on a stream: how far it went since the last one is what inline code moved; ungetc takes it back by one.
 * A call that empties the buffer stores first what no call has counted of that, and no later one gets the rest. Calls
 * of another thread, or through another stream, may be moving meanwhile: then nothing is counted here. */
static inline __attribute__((always_inline)) void entered(struct ensio_thread *thread, uint32_t number, FILE *stream,
                                                          int empties)
{
    if (number <= ENSIO_LEFT_OUT)
        return;
    struct ensio_open_file *open_file = &ensio_open_files[number];
    const uint32_t left_at = __atomic_load_n(&open_file->left_at, __ATOMIC_RELAXED);
    const int32_t moved = (int32_t)(ensio_stream_at(stream) - left_at);
    const int32_t counted = __atomic_load_n(&open_file->ahead, __ATOMIC_RELAXED);
    const uint16_t known = __atomic_load_n(&open_file->user, __ATOMIC_RELAXED);
    const uint16_t user = (uint16_t)(((uintptr_t)thread ^ (uintptr_t)stream) * 0x9e3779b97f4a7c15U >> 48);
    int32_t ahead = counted;
    if (ENSIO_UNLIKELY(known != user)) {
        __atomic_store_n(&open_file->user, known ? ENSIO_SEVERAL : user, __ATOMIC_RELAXED);
        ahead = 0;
    } else if (ENSIO_UNLIKELY(moved) && moved >= -1 && moved <= stream->_IO_buf_end - stream->_IO_buf_base) {
        ahead -= moved;
    }
    const int64_t rest = -(int64_t)ahead;
    if (empties)
        ahead = 0;
    if (ENSIO_UNLIKELY(ahead != counted))
        __atomic_store_n(&open_file->ahead, ahead, __ATOMIC_RELAXED);
    if (empties && ENSIO_UNLIKELY(rest > 0)) {
        TIMED(thread, ahead, 0);
        ensio_store(thread, __fwriting(stream) ? CALL___overflow : CALL___uflow, open_file->file, -1, (uint64_t)rest,
                    rest, start, duration);
    }
}

/* Like RECORD_OR_PASS. A layer that is not recorded costs no clock readings and does not count as enclosing call. */
#define RECORDED_STREAM_OR_RETURN(call, stream, real) \
    RECORDED_STREAM_OR(call, stream, real, thread->excluded_calls++; return real)

/* The same with statements for a descriptor whose calls are not recorded. Streams in memory move no bytes of files. */
#define RECORDED_STREAM_OR(call, stream, real, left_out) \
    if (ENSIO_UNLIKELY(ensio_unwanted_calls[CALL_##call] || ensio_stream_descriptor(stream) < 0)) \
        return real; \
    RECORD_OR(open_file, ensio_stream_descriptor(stream), real, left_out); \
    entered(thread, number, stream, EMPTIES(call))

/* A write to a stream whose calls are not recorded, which may fail. */
#define LEFT_OUT(call, symbol, type, arguments, stream, before, bytes_, moved_) \
    before; \
    type result; \
    if ((int)OP_OF_##call != (int)OP_write) { \
        result = ENSIO_REAL(symbol) arguments; \
        const uint64_t bytes = (uint64_t)(bytes_); \
        (void)bytes; \
        thread->excluded_calls++; \
        ensio_leave_out_read((int64_t)(moved_)); \
        return result; \
    } \
    TIMED_IF_FAILED(thread, ENSIO_CARRIES_READ | ENSIO_CARRIES_WRITE, result, ENSIO_REAL(symbol) arguments); \
    const uint64_t bytes = (uint64_t)(bytes_); \
    const int64_t moved = (moved_); \
    ensio_write_left_out(thread, CALL_##call, ensio_stream_descriptor(stream), bytes, \
                         moved < 0 ? -(int64_t)errno : moved, start); \
    return result

#define TRANSFER(call, symbol, type, parameters, arguments, stream, untouched, before, bytes_, moved_, failed) \
    ENSIO_REAL_DECLARE(type, symbol, parameters) \
    static inline type recorded_##symbol parameters \
    { \
        if (untouched) \
            return ENSIO_REAL(symbol) arguments; \
        RECORDED_STREAM_OR(call, stream, ENSIO_REAL(symbol) arguments, \
                           LEFT_OUT(call, symbol, type, arguments, stream, before, bytes_, moved_)); \
        before; \
        type result; \
        TIMED_CARRYING(thread, ENSIO_CARRIES_READ | ENSIO_CARRIES_WRITE, result, ENSIO_REAL(symbol) arguments); \
        const uint64_t bytes = (uint64_t)(bytes_); \
        const int64_t moved = (moved_); \
        __atomic_store_n(&open_file->left_at, ensio_stream_at(stream), __ATOMIC_RELAXED); \
        ensio_store(thread, CALL_##call, file, -1, bytes, ENSIO_UNLIKELY(moved < 0) ? (failed) : moved, start, \
                    duration); \
        return result; \
    } \
    ENSIO_WRAPPER(type, symbol, parameters) \
    { \
        return recorded_##symbol arguments; \
    }

#define READ(call, symbol, type, parameters, arguments, stream, bytes, moved) \
    TRANSFER(call, symbol, type, parameters, arguments, stream, 0, (void)0, bytes, moved, ensio_read_failed(stream))

#define WRITE(call, symbol, type, parameters, arguments, stream, bytes, moved) \
    TRANSFER(call, symbol, type, parameters, arguments, stream, 0, (void)0, bytes, moved, -(int64_t)errno)

/* With nothing to move, the C library does not read the stream, which may be invalid. */
#define NOT_LOOKED_AT (ENSIO_UNLIKELY(size * count == 0) && !ensio_readable(stream))
#define READ_ITEMS(call, symbol, parameters, arguments) \
    TRANSFER(call, symbol, size_t, parameters, arguments, stream, NOT_LOOKED_AT, (void)0, ITEMS, ITEMS_MOVED, \
             ensio_read_failed(stream))
#define WRITE_ITEMS(call, symbol, parameters, arguments) \
    TRANSFER(call, symbol, size_t, parameters, arguments, stream, NOT_LOOKED_AT, (void)0, ITEMS, ITEMS_MOVED, \
             -(int64_t)errno)

/* A text in the stream's buffer may be overwritten by the call, so its length is taken first. */
#define WRITE_TEXT(call, symbol, parameters, arguments, stream, more) \
    TRANSFER(call, symbol, int, parameters, arguments, stream, 0, const size_t length = strlen(text) + (more), length, \
             ALL_MOVED, -(int64_t)errno)

#define VARIADIC(symbol, twin, parameters, arguments) \
    ENSIO_WRAPPER(int, symbol, parameters) \
    { \
        va_list values; \
        va_start(values, format); \
        const int result = recorded_##twin arguments; \
        va_end(values); \
        return result; \
    }

/* Only objects that were compiled for such a C library call these names. */
#if __GLIBC_PREREQ(2, 38)
#define SINCE_2_38(type, symbol, parameters)
#else
#define SINCE_2_38(type, symbol, parameters) ENSIO_MAY_BE_MISSING(type, symbol, parameters)
#endif

#define NEW_READ(call, symbol, type, parameters, arguments, stream, bytes, moved) \
    SINCE_2_38(type, symbol, parameters) \
    READ(call, symbol, type, parameters, arguments, stream, bytes, moved)

#define NEW_VARIADIC(symbol, twin, parameters, arguments) VARIADIC(symbol, twin, parameters, arguments)

/* A call of a static C library that fills or empties a buffer counts its bytes itself. */
#define REFILL(symbol, parameters, arguments, failed) \
    TRANSFER(symbol, symbol, int, parameters, arguments, stream, (ensio_thread.depth & ENSIO_CARRIES_READ) != 0, \
             const int64_t waiting = stream->_IO_write_ptr - stream->_IO_write_base, \
             result == EOF ? 0 : ensio_stream_refilled(number, stream, waiting), result == EOF ? -1 : (int64_t)bytes, \
             failed)

#define OPEN(call, symbol) \
    ENSIO_WRAPPER(FILE *, symbol, (const char *path, const char *mode)) \
    { \
        struct ensio_thread *thread = &ensio_thread; \
        if (ENSIO_UNLIKELY(!ensio_ready(thread))) \
            return ENSIO_REAL(symbol)(path, mode); \
        FILE *result; \
        TIMED_CARRYING(thread, ENSIO_CARRIES_READ | ENSIO_CARRIES_WRITE, result, ENSIO_REAL(symbol)(path, mode)); \
        ensio_stream_opened(thread, CALL_##call, path, mode, result, start, duration); \
        return result; \
    }

#define FDOPEN(call, symbol) \
    ENSIO_WRAPPER(FILE *, symbol, (int fd, const char *mode)) \
    { \
        RECORD_OR_PASS(open_file, fd, ENSIO_REAL(symbol)(fd, mode)); \
        FILE *result; \
        TIMED_CARRYING(thread, ENSIO_CARRIES_READ | ENSIO_CARRIES_WRITE, result, ENSIO_REAL(symbol)(fd, mode)); \
        const int error = errno; \
        if (result) \
            ensio_descriptor_moved(fd, *mode == 'a' ? 1 : -1); \
        errno = error; \
        ensio_store_with(ensio_access_of(ensio_stream_flags(mode)), thread, CALL_##call, file, -1, 0, \
                         result ? 0 : -(int64_t)error, start, duration); \
        return result; \
    }

#define REOPEN(call, symbol) \
    ENSIO_WRAPPER(FILE *, symbol, (const char *path, const char *mode, FILE *stream)) \
    { \
        struct ensio_thread *thread = &ensio_thread; \
        if (ENSIO_UNLIKELY(!ensio_ready(thread))) \
            return ENSIO_REAL(symbol)(path, mode, stream); \
        const int error = errno, fd = ensio_stream_descriptor(stream); \
        entered(thread, ensio_descriptor(fd), stream, 1); \
        ensio_forget(fd, fd); \
        errno = error; \
        FILE *result; \
        TIMED_CARRYING(thread, ENSIO_CARRIES_READ | ENSIO_CARRIES_WRITE, result, \
                       ENSIO_REAL(symbol)(path, mode, stream)); \
        ensio_stream_opened(thread, CALL_##call, path, mode, result, start, duration); \
        return result; \
    }

#define TMPFILE(call, symbol) \
    ENSIO_WRAPPER(FILE *, symbol, (void)) \
    { \
        struct ensio_thread *thread = &ensio_thread; \
        if (ENSIO_UNLIKELY(!ensio_ready(thread))) \
            return ENSIO_REAL(symbol)(); \
        FILE *result; \
        TIMED_CARRYING(thread, ENSIO_CARRIES_READ | ENSIO_CARRIES_WRITE, result, ENSIO_REAL(symbol)()); \
        ensio_stream_opened(thread, CALL_##call, NULL, NULL, result, start, duration); \
        return result; \
    }

#define CLOSE(call, symbol) \
    ENSIO_WRAPPER(int, symbol, (FILE * stream)) \
    { \
        struct ensio_thread *thread = &ensio_thread; \
        if (ENSIO_UNLIKELY(!ensio_ready(thread))) \
            return ENSIO_REAL(symbol)(stream); \
        uint32_t file; \
        const int error = errno, fd = ensio_stream_descriptor(stream); \
        entered(thread, ensio_descriptor(fd), stream, 1); \
        const int recorded = ensio_closing(thread, fd, &file); \
        errno = error; \
        if (!recorded) \
            return ENSIO_REAL(symbol)(stream); \
        int result; \
        TIMED_CARRYING(thread, ENSIO_CARRIES_READ | ENSIO_CARRIES_WRITE, result, ENSIO_REAL(symbol)(stream)); \
        ensio_store(thread, CALL_##call, file, -1, 0, result ? -(int64_t)errno : 0, start, duration); \
        return result; \
    }

#define ON_STREAM(call, symbol, type, parameters, arguments, stream, bytes, offset, failed) \
    ON_STREAM_UNLESS(0, call, symbol, type, parameters, arguments, stream, bytes, offset, failed)

#define TELL(call, symbol, type, parameters, arguments, stream, bytes, offset, failed) \
    ON_STREAM_UNLESS(ensio_tracer_tells(__builtin_return_address(0)), call, symbol, type, parameters, arguments, \
                     stream, bytes, offset, failed)

#define ON_STREAM_UNLESS(unless, call, symbol, type, parameters, arguments, stream, bytes, offset_, failed_) \
    ENSIO_WRAPPER(type, symbol, parameters) \
    { \
        if (unless) \
            return ENSIO_REAL(symbol) arguments; \
        RECORDED_STREAM_OR_RETURN(call, stream, ENSIO_REAL(symbol) arguments); \
        type result; \
        TIMED_CARRYING(thread, ENSIO_CARRIES_READ | ENSIO_CARRIES_WRITE, result, ENSIO_REAL(symbol) arguments); \
        const int failed = (failed_); \
        __atomic_store_n(&open_file->left_at, ensio_stream_at(stream), __ATOMIC_RELAXED); \
        ensio_store(thread, CALL_##call, file, failed ? -1 : (int64_t)(offset_), (uint64_t)(bytes), \
                    failed ? -(int64_t)errno : 0, start, duration); \
        return result; \
    }

#define ON_STREAM_VOID(call, symbol, parameters, arguments, stream, bytes, offset) \
    ENSIO_WRAPPER(void, symbol, parameters) \
    { \
        RECORDED_STREAM_OR_RETURN(call, stream, (void)(ENSIO_REAL(symbol) arguments)); \
        int none; \
        TIMED_CARRYING(thread, ENSIO_CARRIES_READ | ENSIO_CARRIES_WRITE, none, (ENSIO_REAL(symbol) arguments, 0)); \
        __atomic_store_n(&open_file->left_at, ensio_stream_at(stream), __ATOMIC_RELAXED); \
        ensio_store(thread, CALL_##call, file, offset, (uint64_t)(bytes), none, start, duration); \
    }

/* A call that flushes all streams of the process belongs to no file: fflush without a stream, and fcloseall, which
 * leaves descriptors open. */
#define EVERY_STREAM(call, flushed) \
    struct ensio_thread *thread = &ensio_thread; \
    if (!ensio_ready(thread)) \
        return (flushed); \
    int result; \
    TIMED_CARRYING(thread, ENSIO_CARRIES_READ | ENSIO_CARRIES_WRITE, result, flushed); \
    ensio_store(thread, CALL_##call, 0, -1, 0, result ? -(int64_t)errno : 0, start, duration); \
    return result
#define FLUSH_ALL(call, symbol) \
    ENSIO_WRAPPER(int, symbol, (void)) \
    { \
        EVERY_STREAM(call, ENSIO_REAL(symbol)()); \
    }
#define FLUSH_LEFT_OUT(call, symbol) \
    int result; \
    TIMED_IF_FAILED(thread, ENSIO_CARRIES_READ | ENSIO_CARRIES_WRITE, result, ENSIO_REAL(symbol)(stream)); \
    ensio_write_left_out(thread, CALL_##call, ensio_stream_descriptor(stream), 0, result ? -(int64_t)errno : 0, \
                         start); \
    return result
#define FLUSH(call, symbol) \
    ENSIO_REAL_DECLARE(int, symbol, (FILE * stream)) \
    static int all_##symbol(void) \
    { \
        EVERY_STREAM(call, ENSIO_REAL(symbol)(NULL)); \
    } \
    ENSIO_WRAPPER(int, symbol, (FILE * stream)) \
    { \
        if (!stream) \
            return all_##symbol(); \
        RECORDED_STREAM_OR(call, stream, ENSIO_REAL(symbol)(stream), FLUSH_LEFT_OUT(call, symbol)); \
        int result; \
        TIMED_CARRYING(thread, ENSIO_CARRIES_READ | ENSIO_CARRIES_WRITE, result, ENSIO_REAL(symbol)(stream)); \
        __atomic_store_n(&open_file->left_at, ensio_stream_at(stream), __ATOMIC_RELAXED); \
        ensio_store(thread, CALL_##call, file, -1, 0, result ? -(int64_t)errno : 0, start, duration); \
        return result; \
    }

#include <calls/stdio.def>

void ensio_stdio_resolve(void)
{
#ifdef ENSIO_PRELOAD
#undef SYMBOL
#undef OLD_SYMBOL
#define SYMBOL(symbol) (void)ENSIO_REAL(symbol);
#define OLD_SYMBOL(symbol) (void)real_##symbol; /* resolved at its first call */
#include <calls/stdio.def>
    ensio_other_tracers_find();
#endif
}
