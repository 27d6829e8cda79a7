#include "sharing.h"

#include "queue_heap.h"
#include "capacity.h"

/* ---- the heap of a queue: a pairing heap, which needs no memory besides its parts ---- */

/* Merges two non-empty heaps. Which part is first is unpredictable, so there is no branch. */
static inline int32_t meld(struct heap_node *nodes, int32_t a, int32_t b)
{
    int b_first = nodes[b].finish < nodes[a].finish;
    int32_t first = b_first ? b : a;
    int32_t other = first ^ a ^ b;
    nodes[other].sibling = nodes[first].child;
    nodes[first].child = other;
    return first;
}

/* Removes the root: merges its children in pairs, then the pairs from the last to the first. */
static int32_t without_root(const struct pfs *model, int32_t root)
{
    struct heap_node *nodes = heap_at(model, 0);
    int32_t pairs = 0, child = nodes[root].child;
    while (child) {
        int32_t pair = child, other = nodes[child].sibling;
        child = 0;
        if (other) {
            child = nodes[other].sibling;
            pair = meld(nodes, pair, other);
        }
        nodes[pair].sibling = pairs;
        pairs = pair;
    }
    if (!pairs)
        return 0;
    int32_t heap = pairs;
    pairs = nodes[heap].sibling;
    while (pairs) {
        int32_t next = nodes[pairs].sibling;
        heap = meld(nodes, heap, pairs);
        pairs = next;
    }
    return heap;
}

/* 0: none is left. That takes thousands of cancelled calls whose work still continues. */
static int32_t new_part(struct pfs *model)
{
    int32_t part = model->free_part;
    if (part)
        model->free_part = heap_at(model, part)->sibling;
    else if (model->part_count < model->part_limit)
        part = model->part_count++;
    return part;
}

static void free_part(struct pfs *model, int32_t index)
{
    part_at(model, index)->owner = NOBODY;
    heap_at(model, index)->sibling = model->free_part;
    model->free_part = index;
}

/* Removes the first part of its queue, and cancelled parts that follow. */
static void take_first(struct pfs *model, struct queue *queue)
{
    do {
        int32_t index = queue->first;
        queue->first = without_root(model, index);
        free_part(model, index);
    } while (queue->first && part_at(model, queue->first)->kind == PART_NOBODY);
    if (!queue->first) {
        queue->virtual_ns = 0;
        queue->weight = 0;
    }
}

static void put_in(struct pfs *model, struct queue *queue, int32_t index, double finish)
{
    *heap_at(model, index) = (struct heap_node){.finish = finish};
    queue->first = queue->first ? meld(heap_at(model, 0), queue->first, index) : index;
}

/* ---- virtual time ---- */

static void bring(struct queue *queue, int64_t now_ns)
{
    if (now_ns == queue->updated_ns)
        return;
    if (queue->first)
        queue->virtual_ns += (double)(now_ns - queue->updated_ns) * queue->rate / queue->weight;
    queue->updated_ns = now_ns;
}

static void schedule(struct pfs *model, int32_t id)
{
    const struct queue *queue = queue_at(model, id);
    if (!queue->first) {
        queue_heap_remove(model, id);
        return;
    }
    double finish = heap_at(model, queue->first)->finish;
    if (id == timer_queue(model)) {
        queue_heap_set(model, id, (int64_t)finish);
        return;
    }
    double left_ns = (finish - queue->virtual_ns) * queue->weight;
    if (queue->rate != 1) /* divisions are expensive */
        left_ns /= queue->rate;
    int64_t wait_ns = whole(left_ns);
    if ((double)wait_ns < left_ns)
        wait_ns++;
    int64_t time_ns = queue->updated_ns + wait_ns;
    queue_heap_set(model, id, capacity_time_ns(model, id, queue->updated_ns, time_ns));
}

/* Simultaneous events often change a queue several times: the heap is updated once, after all of them. */
static void has_changed(struct pfs *model, struct queue *queue, int32_t id)
{
    if (queue->changed)
        return;
    queue->changed = model->first_changed + 1; /* the last of the list is 1 */
    model->first_changed = id + 1;
}

void sharing_settle(struct pfs *model)
{
    while (model->first_changed) {
        int32_t id = model->first_changed - 1;
        struct queue *queue = queue_at(model, id);
        model->first_changed = queue->changed - 1;
        queue->changed = 0;
        schedule(model, id);
    }
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
    *part_at(model, index) =
        (struct part){.owner = owner, .call = call, .kind = kind, .queue = (uint32_t)id, .weight = weight};
    put_in(model, queue, index, queue->virtual_ns + work_ns / weight);
    queue->weight += weight;
    has_changed(model, queue, id);
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
    *part_at(model, index) = (struct part){.owner = owner, .call = call, .kind = kind, .queue = (uint32_t)id};
    put_in(model, queue, index, (double)time_ns);
    has_changed(model, queue, id);
    return 1;
}

/* Visits all parts: this is rare, and needs no additional state. */
void sharing_give_up(struct pfs *model, int32_t owner, uint32_t call)
{
    for (int32_t i = 1; i < model->part_count; i++) {
        struct part *part = part_at(model, i);
        if (part->owner != owner || part->call != call || (part->kind != PART_CALL && part->kind != PART_DELAY))
            continue;
        const int32_t id = (int32_t)part->queue;
        struct queue *queue = queue_at(model, id);
        part->kind = PART_NOBODY;
        if (id != timer_queue(model)) {
            bring(queue, model->now_ns);
            queue->weight -= part->weight;
        }
        if (queue->first == i)
            take_first(model, queue);
        has_changed(model, queue, id);
    }
}

int sharing_step(struct pfs *model, struct part *done)
{
    const struct queue_heap_entry next = queue_heap_next(model);
    struct queue *queue = queue_at(model, next.queue);
    const struct part *part = part_at(model, queue->first);
    model->now_ns = next.time_ns;
    has_changed(model, queue, next.queue);
    if (next.queue != timer_queue(model)) {
        bring(queue, next.time_ns);
        /* Less than half a nanosecond of remaining work counts as none, because times are whole nanoseconds. */
        if ((heap_at(model, queue->first)->finish - queue->virtual_ns) * queue->weight > 0.5 * queue->rate) {
            capacity_set(model, next.queue);
            return 0;
        }
        queue->weight -= part->weight;
    }
    *done = *part;
    take_first(model, queue);
    return 1;
}
