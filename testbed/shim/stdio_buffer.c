#include "stdio_buffer.h"

#include <core/rawsys.h>

#include <stdio_ext.h>
#include <string.h>
#include <sys/stat.h>

#define LEAST_BLOCK 128 /* glibc reads and writes directly if the buffer is smaller */

static const struct shim_stream nothing = {.stream = NULL, .ticket = {.slot = -1}};

/* The descriptor of a stream; negative: none. Not fileno(), which changes errno. */
static int descriptor_of(const FILE *stream)
{
    return stream->_fileno;
}

static int64_t pending_of(FILE *stream)
{
    return stream->_IO_write_ptr > stream->_IO_write_base ? stream->_IO_write_ptr - stream->_IO_write_base : 0;
}

static int64_t unread_of(const FILE *stream)
{
    return stream->_IO_read_end - stream->_IO_read_ptr;
}

static int64_t buffer_of(const FILE *stream, const struct shim_file *file)
{
    return stream->_IO_buf_base ? stream->_IO_buf_end - stream->_IO_buf_base : file->block_bytes;
}

static int64_t whole_blocks(int64_t bytes, int64_t block)
{
    return block >= LEAST_BLOCK ? bytes - bytes % block : bytes;
}

static struct shim_stream look_at(FILE *stream, enum shim_stream_call call)
{
    struct shim_stream before = nothing;
    if (!stream || descriptor_of(stream) < 0 || !shim_is_on())
        return before;
    before.position = shim_position(descriptor_of(stream));
    if (before.position < 0)
        return before;
    before.stream = stream;
    before.pending = pending_of(stream);
    before.call = call;
    return before;
}

/* A regular file under the model. */
static int is_under(FILE *stream, struct shim_file *file)
{
    return shim_descriptor_in_scope(descriptor_of(stream), file) && S_ISREG(file->mode);
}

static void begin_write(struct shim_stream *before, const struct shim_file *file, int64_t bytes)
{
    const int error = errno;
    const int flags = (int)ENSIO_RAW(SYS_fcntl, descriptor_of(before->stream), F_GETFL, 0);
    errno = error;
    before->ticket = shim_begin_known(file, PFS_WRITE, bytes, flags & O_APPEND ? file->size : before->position,
                                      flags & (O_SYNC | O_DSYNC | O_DIRECT));
}

/* Data that are not in the buffer are read: whole blocks directly into the program's memory, the rest by filling the
 * buffer. */
struct shim_stream shim_before_read(FILE *stream, int64_t bytes)
{
    if (!stream || (bytes >= 0 && bytes <= unread_of(stream)))
        return nothing;
    struct shim_stream before = look_at(stream, SHIM_READS);
    struct shim_file file;
    if (before.stream && bytes > 0 && is_under(stream, &file)) {
        const int64_t missing = bytes - unread_of(stream), buffer = buffer_of(stream, &file);
        const int64_t straight = whole_blocks(missing, buffer);
        before.ticket =
            shim_begin_known(&file, PFS_READ, straight + (straight < missing ? buffer : 0), before.position, 0);
    }
    return before;
}

/* The buffer is filled up and written, then whole blocks directly from the program's memory; the rest stays in the
 * buffer. */
struct shim_stream shim_before_write(FILE *stream, int64_t bytes)
{
    if (!stream)
        return nothing;
    const int by_line = __flbf(stream) != 0;
    const int64_t room =
        stream->_IO_write_end > stream->_IO_write_ptr ? stream->_IO_write_end - stream->_IO_write_ptr : 0;
    if (bytes >= 0 && bytes <= room && !by_line)
        return nothing;
    struct shim_stream before = look_at(stream, SHIM_WRITES);
    struct shim_file file;
    if (before.stream && bytes > 0 && !by_line && is_under(stream, &file))
        begin_write(&before, &file, before.pending + room + whole_blocks(bytes - room, buffer_of(stream, &file)));
    return before;
}

struct shim_stream shim_before_flush(FILE *stream)
{
    if (!stream || !pending_of(stream))
        return nothing;
    struct shim_stream before = look_at(stream, SHIM_OTHER);
    struct shim_file file;
    if (before.stream && is_under(stream, &file))
        begin_write(&before, &file, before.pending);
    return before;
}

struct shim_stream shim_before_seek(FILE *stream)
{
    return look_at(stream, SHIM_OTHER);
}

/* Delays for system calls that were not predicted. */
static void hold_back_after(struct shim_stream *before, int64_t moved)
{
    FILE *stream = before->stream;
    struct shim_file file;
    const int64_t position = shim_position(descriptor_of(stream));
    if (position == before->position || !is_under(stream, &file))
        return;
    const int64_t written = before->pending + moved - pending_of(stream);
    const int64_t buffered = stream->_IO_read_end - stream->_IO_read_base;
    if (written > 0)
        begin_write(before, &file, written);
    else if (before->call == SHIM_READS && position > before->position)
        before->ticket = shim_begin_known(&file, PFS_READ, position - before->position, before->position, 0);
    else if (before->call == SHIM_OTHER && buffered > 0 && position >= buffered) /* a seek fills the buffer there */
        before->ticket = shim_begin_known(&file, PFS_READ, buffered, position - buffered, 0);
    shim_end(before->ticket);
}

void shim_after(struct shim_stream *before, int64_t moved)
{
    if (before->ticket.slot >= 0)
        shim_end(before->ticket);
    else if (before->stream)
        hold_back_after(before, moved);
}

struct shim_stream shim_before_close(FILE *stream, struct shim_file *file)
{
    struct shim_stream before = stream ? look_at(stream, SHIM_OTHER) : nothing;
    file->key = 0;
    if (before.stream && !is_under(stream, file))
        file->key = 0;
    if (file->key && before.pending)
        begin_write(&before, file, before.pending);
    return before;
}

void shim_after_close(struct shim_stream *before, const struct shim_file *file)
{
    shim_end(before->ticket);
    if (file->key)
        shim_end(shim_begin_of(file->key, PFS_CLOSE));
}

int shim_open_flags(const char *mode)
{
    return mode && (*mode == 'w' || *mode == 'a') ? O_CREAT : 0;
}
