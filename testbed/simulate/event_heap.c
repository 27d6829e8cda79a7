#include "event_heap.h"

#include "fail.h"

#include <stdlib.h>

#define CHILDREN 4 /* fewer levels than with two, and those of a node lie side by side */

static int before(const struct queue_entry *a, const struct queue_entry *b)
{
    return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->number < b->number;
}

void queue_put(struct queue *queue, int64_t time_ns, int32_t task)
{
    if (queue->count == queue->room) {
        queue->room = queue->room ? 2 * queue->room : 1024;
        queue->entries = realloc(queue->entries, (size_t)queue->room * sizeof *queue->entries);
        if (!queue->entries)
            fail(EXIT_FAILURE, "there is no memory for %lld waiting tasks: simulate fewer tasks", (long long)queue->room);
    }
    const struct queue_entry entry = {time_ns, queue->numbers++, task};
    int64_t at = queue->count++;
    while (at && before(&entry, &queue->entries[(at - 1) / CHILDREN])) {
        queue->entries[at] = queue->entries[(at - 1) / CHILDREN];
        at = (at - 1) / CHILDREN;
    }
    queue->entries[at] = entry;
}

int64_t queue_next_ns(const struct queue *queue)
{
    return queue->count ? queue->entries[0].time_ns : INT64_MAX;
}

int32_t queue_take(struct queue *queue)
{
    const int32_t task = queue->entries[0].task;
    const struct queue_entry last = queue->entries[--queue->count];
    int64_t at = 0;
    for (;;) {
        int64_t least = CHILDREN * at + 1;
        if (least >= queue->count)
            break;
        for (int64_t child = least + 1; child <= CHILDREN * at + CHILDREN && child < queue->count; child++)
            if (before(&queue->entries[child], &queue->entries[least]))
                least = child;
        if (!before(&queue->entries[least], &last))
            break;
        queue->entries[at] = queue->entries[least];
        at = least;
    }
    queue->entries[at] = last;
    return task;
}
