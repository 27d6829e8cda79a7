/* event_heap.h: events at known times: a heap by time, first in first out among equal times. */
#ifndef ENSIO_SIMULATE_EVENT_HEAP_H
#define ENSIO_SIMULATE_EVENT_HEAP_H

#include <stdint.h>

#define EVENT_HEAP_ALL_TASKS (-1) /* instead of a task: all of them */

struct event_heap_entry {
    int64_t time_ns;
    uint64_t number; /* of entries so far */
    int32_t task;
};

struct event_heap {
    struct event_heap_entry *entries;
    int64_t count;
    int64_t room;
    uint64_t numbers;
};

void event_heap_put(struct event_heap *heap, int64_t time_ns, int32_t task);

/* INT64_MAX: the heap is empty. */
int64_t event_heap_next_ns(const struct event_heap *heap);

/* Removes the first entry of a non-empty heap and returns its task. */
int32_t event_heap_take(struct event_heap *heap);

#endif
