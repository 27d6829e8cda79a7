/* stdio_buffer.h: what libc reads and writes under a stream.
 *
 * libc's own calls pass no wrapper, so they are told from the stream: what is in its buffer before and after, and where
 * its open file is. Before a large transfer it is also worked out what libc will do, so that the model's time runs from
 * the beginning of the call; what was not foreseen is held back after it. A stream's lock is left alone.
 */
#ifndef ENSIO_SHIM_STDIO_BUFFER_H
#define ENSIO_SHIM_STDIO_BUFFER_H

#include "process.h"

#include <stdio.h>

enum shim_stream_call { SHIM_READS, SHIM_WRITES, SHIM_OTHER };

struct shim_stream {
    FILE *stream; /* NULL: there is nothing to be held back */
    struct shim_ticket ticket;
    int64_t pending; /* bytes in the buffer that were still to be written */
    int64_t position;
    enum shim_stream_call call;
};

/* Before a call that is to move so many bytes; -1: it does not say. */
struct shim_stream shim_before_read(FILE *stream, int64_t bytes);
struct shim_stream shim_before_write(FILE *stream, int64_t bytes);

/* Before fflush, and before calls that move the position. */
struct shim_stream shim_before_flush(FILE *stream);
struct shim_stream shim_before_seek(FILE *stream);

/* After any of them. `moved`: the bytes that a writing call put into the stream. */
void shim_after(struct shim_stream *before, int64_t moved);

/* Around fclose, which writes what is in the buffer, and closes; `file`: what is closed, its key 0 where it is not
 * under the model. */
struct shim_stream shim_before_close(FILE *stream, struct shim_file *file);
void shim_after_close(struct shim_stream *before, const struct shim_file *file);

/* What fopen's mode means for open. */
int shim_open_flags(const char *mode);

#endif
