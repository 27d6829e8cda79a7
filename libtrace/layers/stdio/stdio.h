/* stdio.h: helpers of the stdio wrappers. All of them preserve errno, and none takes a stream's lock. */
#ifndef ENSIO_LAYERS_STDIO_STDIO_H
#define ENSIO_LAYERS_STDIO_STDIO_H

#include <core/recorder.h>
#include <files/descriptors.h>

#include <errno.h>
#include <stdio.h>

/* The descriptor of a stream, as fileno finds it; negative: it has none (fmemopen, open_memstream). */
static inline int ensio_stream_descriptor(FILE *stream)
{
    const int is_on_file = stream->_flags & 0x2000; /* glibc's _IO_IS_FILEBUF; without it, _fileno may be anything */
    return ENSIO_LIKELY(is_on_file) ? stream->_fileno : -1;
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

/* How far a stream is in its buffer: only one of the two members moves. While characters that ungetc put back lie
 * elsewhere, libc keeps the place in the buffer. */
static inline uint32_t ensio_stream_at(FILE *stream)
{
    const size_t room = (size_t)(stream->_IO_buf_end - stream->_IO_buf_base);
    const int is_kept = (uintptr_t)stream->_IO_save_base - (uintptr_t)stream->_IO_buf_base <= room;
    return (uint32_t)((uintptr_t)(is_kept ? stream->_IO_save_base : stream->_IO_read_ptr) +
                      (uintptr_t)stream->_IO_write_ptr);
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
