#include "joined.h"

#include "calls.h"

/* A page that is being read is locked: the other tasks of the node wait for it, and send no request. Reads that others
 * can join are a list of their node, those that have joined a list of the read. Numbers of tasks are stored plus one,
 * so that 0 is the end of a list. */

static int same_bytes(const struct pfs_call *call, const struct pfs_call *other)
{
    return call->file == other->file && call->offset == other->offset && call->bytes == other->bytes;
}

int joined_read(struct pfs *model, int32_t id)
{
    struct task *task = task_at(model, id);
    if (model->settings.shared_reads <= 0 || task->call.file == NOBODY)
        return 0;
    struct node *node = node_at(model, task->node);
    for (int32_t at = node->first_read; at; at = task_at(model, at - 1)->next_read) {
        struct task *reader = task_at(model, at - 1);
        if (!same_bytes(&task->call, &reader->call))
            continue;
        task->joins = at;
        task->next_joined = reader->first_joined;
        reader->first_joined = id + 1;
        return 1;
    }
    task->reads = 1;
    task->next_read = node->first_read;
    node->first_read = id + 1;
    return 0;
}

static void unlink_from(struct pfs *model, int32_t *first, int32_t number, int is_read)
{
    for (int32_t *at = first; *at;) {
        struct task *task = task_at(model, *at - 1);
        int32_t *next = is_read ? &task->next_read : &task->next_joined;
        if (*at == number) {
            *at = *next;
            *next = 0;
            return;
        }
        at = next;
    }
}

void joined_end(struct pfs *model, int32_t id)
{
    struct task *task = task_at(model, id);
    if (task->joins) {
        unlink_from(model, &task_at(model, task->joins - 1)->first_joined, id + 1, 0);
        task->joins = 0;
    }
    if (!task->reads)
        return;
    unlink_from(model, &node_at(model, task->node)->first_read, id + 1, 1);
    task->reads = 0;
    for (int32_t number = task->first_joined, next; number; number = next) {
        struct task *joined = task_at(model, number - 1);
        next = joined->next_joined;
        joined->next_joined = joined->joins = 0;
        call_part_done(model, number - 1);
    }
    task->first_joined = 0;
}
