#include "streams.h"

struct stream *streams_of(struct task *task)
{
    struct stream *oldest = &task->streams[0];
    for (int i = 0; i < PFS_STREAMS; i++) {
        struct stream *stream = &task->streams[i];
        if (stream->file == task->call.file) {
            stream->used = task->number;
            return stream;
        }
        if (oldest->file != NOBODY && (stream->file == NOBODY || stream->used < oldest->used))
            oldest = stream;
    }
    *oldest = (struct stream){.file = task->call.file, .used = task->number, .written = -1};
    return oldest;
}

void streams_open(struct pfs *model, int32_t id)
{
    struct task *task = task_at(model, id);
    if (task->call.file == NOBODY)
        return;
    file_at(model, task->call.file)->opened++;
    streams_of(task)->opened++;
}

void streams_close(struct pfs *model, int32_t id)
{
    struct task *task = task_at(model, id);
    if (task->call.file == NOBODY)
        return;
    struct file *file = file_at(model, task->call.file);
    struct stream *stream = streams_of(task);
    if (file->opened > 0)
        file->opened--;
    if (stream->opened > 0)
        stream->opened--;
}

void streams_forget(struct pfs *model, int32_t id)
{
    struct task *task = task_at(model, id);
    for (int i = 0; i < PFS_STREAMS; i++) {
        struct stream *stream = &task->streams[i];
        if (stream->file != NOBODY)
            file_at(model, stream->file)->opened -= stream->opened;
        *stream = (struct stream){.file = NOBODY};
    }
}
