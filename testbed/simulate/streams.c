#include "streams.h"

#include "calls.h"

#define BUFFER_BYTES 4096 /* of glibc, independent of the file system (BUFSIZ bounds it) */

static int holds(const struct stream *stream, const struct plan_operation *operation)
{
    return stream->file == operation->file && operation->offset >= stream->start &&
           operation->offset + operation->bytes <= stream->start + stream->bytes;
}

int flush_stream(struct simulation *simulation, int32_t number, int64_t now_ns)
{
    struct task *task = &simulation->tasks[number];
    struct stream *stream = &task->stream;
    const struct plan_operation operation = task->operation;
    const int call = task->frames[task->depth - 1].call;
    const int moves = call == RECORDED_fread || call == RECORDED_fwrite;
    if (!moves && stream->file != operation.file)
        return 0; /* it belongs to another stream */
    if (call == RECORDED_fwrite && stream->file == operation.file && operation.offset == stream->start + stream->bytes)
        return 0;
    const struct stream held = *stream;
    if (stream->dirty || call == RECORDED_fseek || call == RECORDED_fclose)
        *stream = (struct stream){.file = -1};
    if (!held.dirty)
        return 0;
    begin_model_call(simulation, number, now_ns, NOT_RECORDED, PFS_WRITE, held.file, held.start, held.bytes);
    return 1;
}

void move_stream_data(struct simulation *simulation, int32_t number, int64_t now_ns)
{
    struct task *task = &simulation->tasks[number];
    struct stream *stream = &task->stream;
    const struct plan_operation operation = task->operation;
    const int writes = task->frames[task->depth - 1].call == RECORDED_fwrite;
    if (writes) {
        if (stream->file != operation.file || stream->start + stream->bytes != operation.offset || !stream->dirty)
            *stream = (struct stream){.start = operation.offset, .file = (int32_t)operation.file};
        const int64_t held = stream->bytes + operation.bytes, out = held / BUFFER_BYTES * BUFFER_BYTES;
        const int64_t from = stream->start;
        *stream = (struct stream){from + out, held - out, stream->file, held > out};
        if (out) {
            begin_model_call(simulation, number, now_ns, NOT_RECORDED, PFS_WRITE, operation.file, from, out);
            return;
        }
    } else if (!holds(stream, &operation)) {
        const int overlaps = stream->file == operation.file && operation.offset >= stream->start &&
                             operation.offset < stream->start + stream->bytes;
        const int64_t from = overlaps ? stream->start + stream->bytes : operation.offset;
        const int64_t wanted = operation.offset + operation.bytes - from;
        const int64_t bytes = (wanted + BUFFER_BYTES - 1) / BUFFER_BYTES * BUFFER_BYTES;
        *stream = (struct stream){from, bytes, (int32_t)operation.file, 0};
        begin_model_call(simulation, number, now_ns, NOT_RECORDED, PFS_READ, operation.file, from, bytes);
        return;
    }
    pfs_wait(simulation->model, number, now_ns + simulation->costs.call_ns);
}
