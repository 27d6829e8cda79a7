#include "queue_heap.h"

/* Among equal times, the queue with the lower number comes first, so that a run is reproducible. The order of two
 * entries is unpredictable, so the comparison has no branch. */
static inline int before(const struct queue_heap_entry *a, const struct queue_heap_entry *b)
{
    return (a->time_ns < b->time_ns) | ((a->time_ns == b->time_ns) & (a->queue < b->queue));
}

static inline int32_t parent_of(int32_t place)
{
    return place / QUEUE_HEAP_CHILDREN + QUEUE_HEAP_FIRST - 1;
}

static inline int32_t first_child_of(int32_t place)
{
    return QUEUE_HEAP_CHILDREN * (place - QUEUE_HEAP_FIRST + 1);
}

static inline void put(struct pfs *model, int32_t place, struct queue_heap_entry entry)
{
    *queue_heap_at(model, place) = entry;
    *queue_heap_place_at(model, entry.queue) = place;
}

static int32_t first_of_children(const struct pfs *model, int32_t child, int32_t end)
{
    const struct queue_heap_entry *entries = queue_heap_at(model, 0);
    if (child + QUEUE_HEAP_CHILDREN <= end) {
        int32_t a = child + before(&entries[child + 1], &entries[child]);
        int32_t b = child + 2 + before(&entries[child + 3], &entries[child + 2]);
        return before(&entries[b], &entries[a]) ? b : a;
    }
    int32_t first = child;
    while (++child < end)
        if (before(&entries[child], &entries[first]))
            first = child;
    return first;
}

static void settle(struct pfs *model, int32_t place, struct queue_heap_entry entry)
{
    const int32_t end = QUEUE_HEAP_FIRST + model->queue_heap_count;
    while (place > QUEUE_HEAP_FIRST && before(&entry, queue_heap_at(model, parent_of(place)))) {
        put(model, place, *queue_heap_at(model, parent_of(place)));
        place = parent_of(place);
    }
    for (;;) {
        int32_t child = first_child_of(place);
        if (child >= end)
            break;
        child = first_of_children(model, child, end);
        if (!before(queue_heap_at(model, child), &entry))
            break;
        put(model, place, *queue_heap_at(model, child));
        place = child;
    }
    put(model, place, entry);
}

void queue_heap_set(struct pfs *model, int32_t queue, int64_t time_ns)
{
    int32_t place = *queue_heap_place_at(model, queue);
    if (!place)
        place = QUEUE_HEAP_FIRST + model->queue_heap_count++;
    else if (queue_heap_at(model, place)->time_ns == time_ns)
        return;
    settle(model, place, (struct queue_heap_entry){.time_ns = time_ns, .queue = queue});
}

void queue_heap_remove(struct pfs *model, int32_t queue)
{
    int32_t place = *queue_heap_place_at(model, queue);
    if (!place)
        return;
    *queue_heap_place_at(model, queue) = 0;
    struct queue_heap_entry last = *queue_heap_at(model, QUEUE_HEAP_FIRST + --model->queue_heap_count);
    if (last.queue != queue)
        settle(model, place, last);
}
