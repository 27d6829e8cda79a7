/* stdio.c: the wrappers of the calls on streams, generated from the recorder's table. stdio_buffer.h covers libc's
 * calls below them. */
#include "stdio_buffer.h"

#include <layers/wrapping.h>

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
#define CALL(number, call, op) CALL_##call = (number),
#include <calls/stdio.def>
};
#undef CALL

#define ITEMS items_bytes(size, count)
#define ITEMS_MOVED (int64_t)(result * size)
#define LINE_MOVED 0
#define ONE_MOVED (result == EOF ? 0 : 1)
#define WORD_MOVED 0
#define ALL_MOVED (result == EOF ? 0 : bytes)
#define AS_MOVED -1
#define SCANNED 0

static int64_t items_bytes(size_t size, size_t count)
{
    int64_t bytes;
    return __builtin_mul_overflow(size, count, &bytes) ? -1 : bytes;
}

/* The bytes that a read requests, if that is known exactly before it. */
static int64_t read_bytes(int call, int64_t bytes)
{
    return call == CALL_fread || call == CALL_fgetc || call == CALL_getw ? bytes : -1;
}

#define TRANSFER(symbol, type, parameters, arguments, before_, bytes_, moved) \
    ENSIO_REAL_DECLARE(type, symbol, parameters) \
    static type held_##symbol parameters \
    { \
        const int64_t bytes = (int64_t)(bytes_); \
        struct shim_stream before = (before_); \
        type result = ENSIO_REAL(symbol) arguments; \
        if (before.stream) \
            shim_after(&before, (moved)); \
        (void)bytes; \
        return result; \
    } \
    __attribute__((visibility("default"))) type ensio_##symbol parameters __asm__(ENSIO_LINK_NAME(symbol)); \
    type ensio_##symbol parameters \
    { \
        return held_##symbol arguments; \
    }

#define READ(call, symbol, type, parameters, arguments, stream, bytes_, moved) \
    TRANSFER(symbol, type, parameters, arguments, shim_before_read(stream, read_bytes(CALL_##call, bytes)), bytes_, 0)

#define WRITE(call, symbol, type, parameters, arguments, stream, bytes_, moved) \
    TRANSFER(symbol, type, parameters, arguments, shim_before_write(stream, bytes), bytes_, moved)

#define NEW_READ(call, symbol, type, parameters, arguments, stream, bytes, moved) \
    READ(call, symbol, type, parameters, arguments, stream, bytes, moved)

#define VARIADIC(symbol, twin, parameters, arguments) \
    __attribute__((visibility("default"))) int ensio_##symbol parameters __asm__(ENSIO_LINK_NAME(symbol)); \
    int ensio_##symbol parameters \
    { \
        va_list values; \
        va_start(values, format); \
        const int result = held_##twin arguments; \
        va_end(values); \
        return result; \
    }

#define NEW_VARIADIC(symbol, twin, parameters, arguments) VARIADIC(symbol, twin, parameters, arguments)

#define OPENED(symbol, parameters, arguments) \
    ENSIO_WRAPPER(FILE *, symbol, parameters) \
    { \
        const struct shim_ticket ticket = shim_begin_open(AT_FDCWD, path, shim_open_flags(mode)); \
        FILE *result = ENSIO_REAL(symbol) arguments; \
        shim_end(ticket); \
        return result; \
    }

#define OPEN(call, symbol) OPENED(symbol, (const char *path, const char *mode), (path, mode))
#define REOPEN(call, symbol) OPENED(symbol, (const char *path, const char *mode, FILE *stream), (path, mode, stream))

#define CLOSE(call, symbol) \
    ENSIO_WRAPPER(int, symbol, (FILE * stream)) \
    { \
        struct shim_file file; \
        struct shim_stream before = shim_before_close(stream, &file); \
        const int result = ENSIO_REAL(symbol)(stream); \
        shim_after_close(&before, &file); \
        return result; \
    }

#define FLUSH(call, symbol) \
    ENSIO_WRAPPER(int, symbol, (FILE * stream)) \
    { \
        struct shim_stream before = shim_before_flush(stream); \
        const int result = ENSIO_REAL(symbol)(stream); \
        shim_after(&before, 0); \
        return result; \
    }

/* setvbuf and similar functions make no system call. */
#define ON_STREAM(call, symbol, type, parameters, arguments, stream, bytes, offset, failed) \
    ENSIO_WRAPPER(type, symbol, parameters) \
    { \
        struct shim_stream before = {.ticket = {.slot = -1}}; \
        if (CALL_##call != CALL_setvbuf) \
            before = shim_before_seek(stream); \
        type result = ENSIO_REAL(symbol) arguments; \
        shim_after(&before, 0); \
        return result; \
    }

#define ON_STREAM_VOID(call, symbol, parameters, arguments, stream, bytes, offset) \
    ENSIO_WRAPPER(void, symbol, parameters) \
    { \
        struct shim_stream before = {.ticket = {.slot = -1}}; \
        if (CALL_##call != CALL_setvbuf) \
            before = shim_before_seek(stream); \
        ENSIO_REAL(symbol) arguments; \
        shim_after(&before, 0); \
    }

#include <calls/stdio.def>

__attribute__((constructor)) static void resolve(void)
{
#undef SYMBOL
#undef OLD_SYMBOL
#define SYMBOL(symbol) (void)ENSIO_REAL(symbol);
#define OLD_SYMBOL(symbol)
#define FDOPEN(call, symbol)
#define TMPFILE(call, symbol)
#define FLUSH_ALL(call, symbol)
#define REFILL(symbol, parameters, arguments, failed)
#define VARIADIC(symbol, twin, parameters, arguments)
#include <calls/stdio.def>
}
