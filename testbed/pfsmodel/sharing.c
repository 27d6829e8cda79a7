#include "sharing.h"

#include "agenda.h"
#include "capacity.h"

/* ---- the heap of a queue: a pairing heap, as it needs no memory beside its parts ---- */

static int32_t meld(struct pfs *model, int32_t a, int32_t b)
{
    if (!a)
        return b;
    if (!b)
        return a;
    struct part *one = part_at(model, a), *other = part_at(model, b);
    if (other->finish < one->finish) {
        one->sibling = other->child;
        other->child = a;
        return b;
    }
    other->sibling = one->child;
    one->child = b;
    return a;
}

/* The heap without its root: the children in pairs, then the pairs from the last to the first. */
static int32_t without_root(struct pfs *model, int32_t root)
{
    int32_t pairs = 0, child = part_at(model, root)->child;
    while (child) {
        int32_t other = part_at(model, child)->sibling;
        int32_t next = other ? part_at(model, other)->sibling : 0;
        part_at(model, child)->sibling = 0;
        if (other)
            part_at(model, other)->sibling = 0;
        int32_t pair = meld(model, child, other);
        part_at(model, pair)->sibling = pairs;
        pairs = pair;
        child = next;
    }
    int32_t heap = 0;
    while (pairs) {
        int32_t next = part_at(model, pairs)->sibling;
        part_at(model, pairs)->sibling = 0;
        heap = meld(model, heap, pairs);
        pairs = next;
    }
    return heap;
}

/* 0: there is none. That takes thousands of calls that were given up in the middle and whose work still goes on. */
static int32_t new_part(struct pfs *model)
{
    int32_t part = model->free_part;
    if (part)
        model->free_part = part_at(model, part)->sibling;
    else if (model->part_count < model->part_limit)
        part = model->part_count++;
    return part;
}

static void free_part(struct pfs *model, int32_t index)
{
    struct part *part = part_at(model, index);
    part->owner = NOBODY;
    part->sibling = model->free_part;
    model->free_part = index;
}

static void drop_given_up(struct pfs *model, struct queue *queue)
{
    while (queue->first && part_at(model, queue->first)->kind == PART_NOBODY) {
        int32_t index = queue->first;
        queue->first = without_root(model, index);
        free_part(model, index);
    }
}

/* ---- virtual time ---- */

static void bring(struct queue *queue, int64_t now_ns)
{
    if (queue->first)
        queue->virtual_ns += (double)(now_ns - queue->updated_ns) * queue->rate / queue->weight;
    queue->updated_ns = now_ns;
}

static void schedule(struct pfs *model, int32_t id)
{
    struct queue *queue = queue_at(model, id);
    drop_given_up(model, queue);
    if (!queue->first) {
        queue->virtual_ns = 0;
        queue->weight = 0;
        agenda_remove(model, id);
        return;
    }
    double finish = part_at(model, queue->first)->finish;
    if (id == timer_queue(model)) {
        agenda_set(model, id, (int64_t)finish);
        return;
    }
    double left_ns = (finish - queue->virtual_ns) * queue->weight / queue->rate;
    int64_t wait_ns = whole(left_ns);
    if ((double)wait_ns < left_ns)
        wait_ns++;
    int64_t time_ns = queue->updated_ns + wait_ns;
    agenda_set(model, id, capacity_time_ns(model, id, queue->updated_ns, time_ns));
}

int sharing_add(struct pfs *model, int32_t id, enum part_kind kind, int32_t owner, uint32_t call, double work_ns,
                float weight)
{
    struct queue *queue = queue_at(model, id);
    int32_t index = new_part(model);
    if (!index)
        return 0;
    bring(queue, model->now_ns);
    if (!queue->first)
        capacity_set(model, id);
    *part_at(model, index) = (struct part){.finish = queue->virtual_ns + work_ns / weight,
                                           .owner = owner,
                                           .call = call,
                                           .queue = id,
                                           .kind = kind,
                                           .weight = weight};
    queue->weight += weight;
    queue->first = meld(model, queue->first, index);
    schedule(model, id);
    return 1;
}

int sharing_at(struct pfs *model, int64_t time_ns, enum part_kind kind, int32_t owner, uint32_t call)
{
    int32_t id = timer_queue(model), index = new_part(model);
    struct queue *queue = queue_at(model, id);
    if (!index)
        return 0;
    if (time_ns < model->now_ns)
        time_ns = model->now_ns;
    *part_at(model, index) =
        (struct part){.finish = (double)time_ns, .owner = owner, .call = call, .queue = id, .kind = kind};
    queue->first = meld(model, queue->first, index);
    schedule(model, id);
    return 1;
}

/* All parts are looked at: this is rare, and nothing has to be kept for it. */
void sharing_give_up(struct pfs *model, int32_t owner, uint32_t call)
{
    for (int32_t i = 1; i < model->part_count; i++) {
        struct part *part = part_at(model, i);
        if (part->owner != owner || part->call != call || (part->kind != PART_CALL && part->kind != PART_DELAY))
            continue;
        struct queue *queue = queue_at(model, part->queue);
        part->kind = PART_NOBODY;
        if (part->queue != timer_queue(model)) {
            bring(queue, model->now_ns);
            queue->weight -= part->weight;
        }
        schedule(model, part->queue);
    }
}

int64_t sharing_next_ns(const struct pfs *model)
{
    return model->agenda_count ? agenda_at(model, 1)->time_ns : INT64_MAX;
}

int sharing_step(struct pfs *model, struct part *done)
{
    struct agenda_entry next = *agenda_at(model, 1);
    struct queue *queue = queue_at(model, next.queue);
    int32_t index = queue->first;
    struct part *part = part_at(model, index);
    model->now_ns = next.time_ns;
    if (next.queue != timer_queue(model)) {
        bring(queue, next.time_ns);
        /* Less than half a nanosecond of work left is none: times are whole nanoseconds. */
        if ((part->finish - queue->virtual_ns) * queue->weight > 0.5 * queue->rate) {
            capacity_set(model, next.queue);
            schedule(model, next.queue);
            return 0;
        }
        queue->weight -= part->weight;
    }
    *done = *part;
    queue->first = without_root(model, index);
    free_part(model, index);
    schedule(model, next.queue);
    return 1;
}
