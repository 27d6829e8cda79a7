/* event_heap.h: what happens at a time that is known already: a heap by time, first in first out among equals. */
#ifndef ENSIO_SIMULATE_EVENT_HEAP_H
#define ENSIO_SIMULATE_EVENT_HEAP_H

#include <stdint.h>

#define QUEUE_ALL_TASKS (-1) /* in place of a task: all of them */

struct queue_entry {
    int64_t time_ns;
    uint64_t number; /* of entries so far */
    int32_t task;
};

struct queue {
    struct queue_entry *entries;
    int64_t count;
    int64_t room;
    uint64_t numbers;
};

void queue_put(struct queue *queue, int64_t time_ns, int32_t task);

/* INT64_MAX: nothing is waiting. */
int64_t queue_next_ns(const struct queue *queue);

/* Takes the first entry's task, of a queue that is not empty. */
int32_t queue_take(struct queue *queue);

#endif
