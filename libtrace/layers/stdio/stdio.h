/* stdio.h: helpers of the stdio wrappers. All of them preserve errno, and none takes a stream's lock. */
#ifndef ENSIO_LAYERS_STDIO_STDIO_H
#define ENSIO_LAYERS_STDIO_STDIO_H

#include <core/recorder.h>
#include <files/descriptors.h>

#include <errno.h>
#include <stdio.h>

/* The value that fileno returns; negative for a stream without a descriptor (fmemopen). */
static inline int ensio_stream_descriptor(FILE *stream)
{
    return stream->_fileno;
}

/* Bytes of `count` items, saturated at the largest number. */
static inline uint64_t ensio_items_bytes(size_t size, size_t count)
{
    size_t bytes;
    return __builtin_mul_overflow(size, count, &bytes) ? UINT64_MAX : bytes;
}

/* The result of a failed read: 0 at the end of the file, else minus the errno. */
static inline int64_t ensio_read_failed(FILE *stream)
{
    return feof_unlocked(stream) ? 0 : -(int64_t)errno;
}

/* How far a stream is in its buffer: only one of the two members moves. */
static inline uintptr_t ensio_stream_at(FILE *stream)
{
    return (uintptr_t)stream->_IO_read_ptr + (uintptr_t)stream->_IO_write_ptr;
}

/* After inline code had a buffer filled, or emptied that held `waiting` bytes: the bytes to count, so that those of all
 * calls on a stream are what the program got or gave. `number`: of the open file. */
int64_t ensio_stream_refilled(uint32_t number, FILE *stream, int64_t waiting);

/* Flags of open(2) for a mode of fopen; NULL: of tmpfile. */
int ensio_stream_flags(const char *mode);

/* After an open: binds the descriptor to its file, and stores the event. `path`: NULL for a file without a name;
 * `mode`: as for fopen; `stream`: NULL if the call failed. */
void ensio_stream_opened(struct ensio_thread *thread, uint16_t call, const char *path, const char *mode, FILE *stream,
                         uint64_t start, uint64_t duration);

#endif
