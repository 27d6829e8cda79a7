#include "locks.h"

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
    struct task *task = task_at(model, id);
    double strength = model->settings.fault.misaligned_requests;
    task->first_extra_ns = task->last_extra_ns = 0;
    if (strength <= 0 || task->call.file == NOBODY || !file_at(model, task->call.file)->shared)
        return 0;
    const int64_t size = model->stripe_bytes, end = task->call.offset + task->call.bytes;
    const double work_ns = strength * model->settings.lock_conflict_ms * 1e6;
    int first = task->call.offset % size != 0, last = end % size != 0;
    if (first && last && task->call.offset / size == (end - 1) / size)
        last = 0; /* one stripe has one lock */
    task->first_extra_ns = first * work_ns;
    task->last_extra_ns = last * work_ns;
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
