/* stdio_buffer.h: the reads and writes of libc below a stream.
 *
 * libc's internal calls pass no wrapper, so they are inferred from the stream: its buffer and its file position before
 * and after the call. For large transfers, libc's behaviour is also predicted, so that the model's time starts at the
 * beginning of the call; the delay of unpredicted transfers follows the call. A stream's lock is not taken. */
#ifndef ENSIO_SHIM_STDIO_BUFFER_H
#define ENSIO_SHIM_STDIO_BUFFER_H

#include "process.h"

#include <stdio.h>

enum shim_stream_call { SHIM_READS, SHIM_WRITES, SHIM_OTHER };

struct shim_stream {
    FILE *stream; /* NULL: nothing is delayed */
    struct shim_ticket ticket;
    int64_t pending; /* bytes in the buffer that were not written yet */
    int64_t position;
    enum shim_stream_call call;
};

/* Before a call that moves this many bytes; -1: unknown. */
struct shim_stream shim_before_read(FILE *stream, int64_t bytes);
struct shim_stream shim_before_write(FILE *stream, int64_t bytes);

/* Before fflush, and before calls that move the position. */
struct shim_stream shim_before_flush(FILE *stream);
struct shim_stream shim_before_seek(FILE *stream);

/* After any of them. `moved`: bytes that a writing call put into the stream. */
void shim_after(struct shim_stream *before, int64_t moved);

/* Around fclose, which writes the buffer and closes the file; `file`: the file, with key 0 if it is not under the
 * model. */
struct shim_stream shim_before_close(FILE *stream, struct shim_file *file);
void shim_after_close(struct shim_stream *before, const struct shim_file *file);

/* The flags of open for a mode of fopen. */
int shim_open_flags(const char *mode);

#endif
