#include "event_heap.h"

#include "fail.h"

#include <stdlib.h>

#define CHILDREN 4 /* fewer levels than with two, and the children of a node are adjacent */

static int before(const struct event_heap_entry *a, const struct event_heap_entry *b)
{
    return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->number < b->number;
}

void event_heap_put(struct event_heap *heap, int64_t time_ns, int32_t task)
{
    if (heap->count == heap->room) {
        heap->room = heap->room ? 2 * heap->room : 1024;
        heap->entries = realloc(heap->entries, (size_t)heap->room * sizeof *heap->entries);
        if (!heap->entries)
            fail(EXIT_FAILURE, "there is no memory for %lld waiting tasks: simulate fewer tasks",
                 (long long)heap->room);
    }
    const struct event_heap_entry entry = {time_ns, heap->numbers++, task};
    int64_t at = heap->count++;
    while (at && before(&entry, &heap->entries[(at - 1) / CHILDREN])) {
        heap->entries[at] = heap->entries[(at - 1) / CHILDREN];
        at = (at - 1) / CHILDREN;
    }
    heap->entries[at] = entry;
}

int64_t event_heap_next_ns(const struct event_heap *heap)
{
    return heap->count ? heap->entries[0].time_ns : INT64_MAX;
}

int32_t event_heap_take(struct event_heap *heap)
{
    const int32_t task = heap->entries[0].task;
    const struct event_heap_entry last = heap->entries[--heap->count];
    int64_t at = 0;
    for (;;) {
        int64_t least = CHILDREN * at + 1;
        if (least >= heap->count)
            break;
        for (int64_t child = least + 1; child <= CHILDREN * at + CHILDREN && child < heap->count; child++)
            if (before(&heap->entries[child], &heap->entries[least]))
                least = child;
        if (!before(&heap->entries[least], &last))
            break;
        heap->entries[at] = heap->entries[least];
        at = least;
    }
    heap->entries[at] = last;
    return task;
}
