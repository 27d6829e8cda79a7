#include "sharing.h"

#include "queue_heap.h"
#include "capacity.h"

/* ---- the parts of a queue: sorted runs, each at least several times as long as the next newer one ---- */

#define LONGER 4

/* The first part of a run. */
static inline struct part *head_of(const struct pfs *model, int32_t run)
{
    struct chunk *chunk = chunk_at(model, run);
    return &chunk->parts[chunk->begin];
}

static int32_t new_chunk(struct pfs *model)
{
    int32_t index = model->free_chunk;
    if (index)
        model->free_chunk = chunk_at(model, index)->next;
    else
        index = model->chunk_end++;
    model->chunks_left--;
    struct chunk *chunk = chunk_at(model, index);
    chunk->next = chunk->older = chunk->length = chunk->begin = chunk->end = 0;
    return index;
}

/* Removes the first part of a run. An empty run leaves its list. */
static inline void behead(struct pfs *model, int32_t *run)
{
    const int32_t index = *run;
    struct chunk *chunk = chunk_at(model, index);
    chunk->length--;
    if (++chunk->begin < chunk->end)
        return;
    *run = chunk->older;
    if (chunk->next) {
        struct chunk *next = chunk_at(model, chunk->next);
        next->older = chunk->older;
        next->length = chunk->length;
        __builtin_prefetch(chunk_at(model, next->next));
        *run = chunk->next;
    }
    chunk->next = model->free_chunk;
    model->free_chunk = index;
    model->chunks_left++;
}

/* Merges a run and the next older one. Of parts that complete at the same time, those that came first are first. */
static int32_t merged(struct pfs *model, int32_t run)
{
    int32_t older = chunk_at(model, run)->older, first = 0, *next = &first;
    const int32_t rest = chunk_at(model, older)->older;
    const int32_t length = chunk_at(model, run)->length + chunk_at(model, older)->length;
    struct chunk *chunk = NULL;
    chunk_at(model, run)->older = chunk_at(model, older)->older = 0;
    while (run || older) {
        if (!chunk || chunk->end == CHUNK_PARTS) {
            *next = new_chunk(model);
            chunk = chunk_at(model, *next);
            next = &chunk->next;
        }
        int32_t *from = !older || (run && head_of(model, run)->finish < head_of(model, older)->finish) ? &run : &older;
        chunk->parts[chunk->end++] = *head_of(model, *from);
        behead(model, from);
    }
    chunk_at(model, first)->older = rest;
    chunk_at(model, first)->length = length;
    return first;
}

static void merge_runs(struct pfs *model, struct queue *queue)
{
    for (int32_t *run = &queue->runs; *run && chunk_at(model, *run)->older;) {
        struct chunk *chunk = chunk_at(model, *run);
        if (LONGER * (int64_t)chunk->length > chunk_at(model, chunk->older)->length)
            *run = merged(model, *run);
        else
            run = &chunk->older;
    }
}

/* 0: there is no room. That takes thousands of cancelled calls whose work still continues. */
static int put_in(struct pfs *model, struct queue *queue, struct part part)
{
    struct chunk *run = chunk_at(model, queue->runs);
    if (!queue->runs || run->next || run->end == CHUNK_PARTS) {
        if (model->chunks_left <= 0)
            return 0;
        merge_runs(model, queue);
        const int32_t index = new_chunk(model);
        run = chunk_at(model, index);
        run->older = queue->runs;
        queue->runs = index;
    }
    int at = run->end++;
    for (; at > run->begin && part.finish < run->parts[at - 1].finish; at--)
        run->parts[at] = run->parts[at - 1];
    run->parts[at] = part;
    run->length++;
    return 1;
}

/* The run whose first part completes first. */
static int32_t *first_run(const struct pfs *model, struct queue *queue)
{
    int32_t *first = &queue->runs;
    for (int32_t *run = &chunk_at(model, *first)->older; *run; run = &chunk_at(model, *run)->older)
        if (head_of(model, *run)->finish <= head_of(model, *first)->finish)
            first = run;
    return first;
}

static void take_from(struct pfs *model, struct queue *queue, int32_t *run)
{
    behead(model, run);
    if (!queue->runs) {
        queue->virtual_ns = 0;
        queue->weight = 0;
    }
}

/* ---- virtual time ---- */

static void bring(struct queue *queue, int64_t now_ns)
{
    if (now_ns == queue->updated_ns)
        return;
    if (queue->runs)
        queue->virtual_ns += (double)(now_ns - queue->updated_ns) * queue->rate / queue->weight;
    queue->updated_ns = now_ns;
}

static void schedule(struct pfs *model, int32_t id)
{
    struct queue *queue = queue_at(model, id);
    const struct part *first = NULL;
    while (queue->runs) {
        int32_t *run = first_run(model, queue);
        first = head_of(model, *run);
        if (first->kind != PART_NOBODY)
            break;
        take_from(model, queue, run);
    }
    if (!queue->runs) {
        queue_heap_remove(model, id);
        return;
    }
    double finish = first->finish;
    if (first->kind != PART_GATHER)
        __builtin_prefetch(&task_at(model, first->owner)->parts);
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

int sharing_add(struct pfs *model, int32_t id, enum part_kind kind, int32_t owner, double work_ns, float weight)
{
    struct queue *queue = queue_at(model, id);
    bring(queue, model->now_ns);
    if (!queue->runs)
        capacity_set(model, id);
    const double finish = queue->virtual_ns + work_ns / weight;
    if (!put_in(model, queue, (struct part){finish, weight, kind, (uint32_t)owner}))
        return 0;
    queue->weight += weight;
    has_changed(model, queue, id);
    return 1;
}

int sharing_at(struct pfs *model, int64_t time_ns, enum part_kind kind, int32_t owner)
{
    int32_t id = timer_queue(model);
    struct queue *queue = queue_at(model, id);
    if (time_ns < model->now_ns)
        time_ns = model->now_ns;
    if (!put_in(model, queue, (struct part){(double)time_ns, 0, kind, (uint32_t)owner}))
        return 0;
    has_changed(model, queue, id);
    return 1;
}

static void give_up(struct pfs *model, int32_t id, struct part *part)
{
    struct queue *queue = queue_at(model, id);
    if (part->kind == PART_METADATA)
        part->kind = PART_LEFT;
    if (part->kind != PART_CALL && part->kind != PART_DELAY)
        return;
    part->kind = PART_NOBODY;
    if (id != timer_queue(model)) {
        bring(queue, model->now_ns);
        queue->weight -= part->weight;
    }
    has_changed(model, queue, id);
}

/* Visits all parts: this is rare, and needs no additional state. */
void sharing_give_up(struct pfs *model, int32_t owner)
{
    for (int32_t id = 0; id < model->queue_count; id++)
        for (int32_t run = queue_at(model, id)->runs; run; run = chunk_at(model, run)->older)
            for (int32_t index = run; index; index = chunk_at(model, index)->next) {
                struct chunk *chunk = chunk_at(model, index);
                for (int i = chunk->begin; i < chunk->end; i++)
                    if (chunk->parts[i].owner == (uint32_t)owner)
                        give_up(model, id, &chunk->parts[i]);
            }
}

int sharing_step(struct pfs *model, struct part *done)
{
    const struct queue_heap_entry next = queue_heap_next(model);
    struct queue *queue = queue_at(model, next.queue);
    int32_t *run = first_run(model, queue);
    *done = *head_of(model, *run);
    model->now_ns = next.time_ns;
    has_changed(model, queue, next.queue);
    if (next.queue != timer_queue(model)) {
        bring(queue, next.time_ns);
        /* Less than half a nanosecond of remaining work counts as none, because times are whole nanoseconds. */
        if ((done->finish - queue->virtual_ns) * queue->weight > 0.5 * queue->rate) {
            capacity_set(model, next.queue);
            return 0;
        }
        queue->weight -= done->weight;
    }
    take_from(model, queue, run);
    return 1;
}
