#include "cache.h"

#include "locks.h"
#include "targets.h"

/* Bytes that a call waits for take precedence over bytes written back in the background. */
#define BEHIND 0.05f

/* A task has one drain at a time. Later writes are merged and go out next, as one range that begins where the first of
 * them does: their total length is kept, their positions are not. */
static void drain(struct pfs *model, int32_t id)
{
    struct task *task = task_at(model, id);
    while (task->pending.bytes > 0 && task->drain_parts == 0) {
        struct transfer transfer = {.kind = PART_DRAIN,
                                    .task = id,
                                    .file = task->pending.file,
                                    .offset = task->pending.offset,
                                    .bytes = task->pending.bytes,
                                    .number = task->drains++,
                                    .weight = BEHIND,
                                    .factor = locks_writers(model, task->pending.file)};
        task->draining_bytes = task->pending.bytes;
        task->pending.bytes = 0;
        task->drain_parts = targets_add(model, &transfer);
        if (task->drain_parts == 0) {
            task->dirty_bytes -= task->draining_bytes;
            task->draining_bytes = 0;
        }
    }
}

int64_t cache_absorb(struct pfs *model, int32_t id)
{
    struct task *task = task_at(model, id);
    int64_t share = whole(model->settings.cache_MiB * 0x1p20 / model->settings.tasks_per_node);
    int64_t room = share - task->dirty_bytes;
    int64_t bytes = task->call.bytes < room ? task->call.bytes : room;
    if (bytes <= 0)
        return 0;
    if (task->pending.bytes == 0)
        task->pending = (struct extent){.file = task->call.file, .offset = task->call.offset};
    task->pending.bytes += bytes;
    task->dirty_bytes += bytes;
    drain(model, id);
    return bytes;
}

int cache_part_done(struct pfs *model, int32_t id)
{
    struct task *task = task_at(model, id);
    if (--task->drain_parts > 0)
        return 0;
    task->dirty_bytes -= task->draining_bytes;
    task->draining_bytes = 0;
    drain(model, id);
    return task->dirty_bytes == 0;
}
