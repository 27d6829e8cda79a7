/* stdio.h: what a line of the table of streams cannot say. All of these keep errno, and none takes a stream's lock. */
#ifndef ENSIO_LAYERS_STDIO_STDIO_H
#define ENSIO_LAYERS_STDIO_STDIO_H

#include <core/recorder.h>

#include <errno.h>
#include <stdio.h>

/* The descriptor under a stream; -1: there is none (fmemopen). */
static inline int ensio_stream_descriptor(FILE *stream)
{
#if defined(__GLIBC__)
    return stream->_fileno; /* what fileno returns, and of a stream without one below 0 too */
#else
    const int error = errno;
    const int fd = fileno_unlocked(stream);
    if (ENSIO_UNLIKELY(fd < 0))
        errno = error;
    return fd;
#endif
}

/* Bytes of `count` items; the largest number where the product is larger than any. */
static inline uint64_t ensio_items_bytes(size_t size, size_t count)
{
    size_t bytes;
    return __builtin_mul_overflow(size, count, &bytes) ? UINT64_MAX : bytes;
}

/* What a read that failed has moved: 0 at the end of the file, else minus the errno. */
static inline int64_t ensio_read_failed(FILE *stream)
{
    return feof_unlocked(stream) ? 0 : -(int64_t)errno;
}

/* After an open of a path, or with NULL of a file that has no name of the program's: ties the descriptor to its file,
 * and stores the event. `mode`: as of fopen; `stream`: NULL where it failed. */
void ensio_stream_opened(struct ensio_thread *thread, uint16_t call, const char *path, const char *mode, FILE *stream,
                         uint64_t start, uint64_t duration);

#endif
