#include "locks.h"

#include "streams.h"

void locks_come(struct pfs *model, int32_t task, int32_t id)
{
    if (id == NOBODY)
        return;
    struct file *file = file_at(model, id);
    int32_t node = task_at(model, task)->node;
    if (file->node == NOBODY)
        file->node = node;
    else if (file->node != node)
        file->shared = 1;
}

int locks_write(struct pfs *model, int32_t id)
{
    const struct pfs_settings *settings = &model->settings;
    struct task *task = task_at(model, id);
    const struct pfs_call *call = &task->call;
    double strength = settings->fault.misaligned_requests;
    task->first_extra_ns = task->last_extra_ns = 0;
    if (strength <= 0 || call->file == NOBODY || !file_at(model, call->file)->shared)
        return 0;
    struct stream *stream = streams_of(task);
    const int64_t size = model->stripe_bytes, end = call->offset + call->bytes;
    int first = call->offset % size != 0 && call->offset != stream->written;
    int last = end % size != 0;
    stream->written = end;
    if (first && call->offset / size == (end - 1) / size)
        last = 0; /* one stripe is merged once */
    task->first_extra_ns = first * strength * (settings->lock_conflict_ms + settings->partial_stripe_ms) * 1e6;
    task->last_extra_ns = last * strength * settings->partial_stripe_ms * 1e6;
    return first || last;
}

double locks_writers(const struct pfs *model, int32_t file)
{
    const struct pfs_settings *settings = &model->settings;
    if (settings->fault.too_many_writers <= 0 || file == NOBODY)
        return 1;
    double more = file_at(model, file)->opened - settings->writers_free;
    return more > 0 ? 1 + settings->fault.too_many_writers * more / settings->writers_doubling : 1;
}
