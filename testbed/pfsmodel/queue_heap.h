/* queue_heap.h: a heap of the busy queues by the time of their next event. */
#ifndef ENSIO_PFSMODEL_QUEUE_HEAP_H
#define ENSIO_PFSMODEL_QUEUE_HEAP_H

#include "state.h"

/* The four children of an entry lie in one cache line; the first entry is therefore the last of its line. */
#define QUEUE_HEAP_CHILDREN 4
#define QUEUE_HEAP_FIRST (QUEUE_HEAP_CHILDREN - 1)

void queue_heap_set(struct pfs *model, int32_t queue, int64_t time_ns);
void queue_heap_remove(struct pfs *model, int32_t queue);

/* The queue with the next event; there must be one. */
static inline struct queue_heap_entry queue_heap_next(const struct pfs *model)
{
    return *queue_heap_at(model, QUEUE_HEAP_FIRST);
}

#endif
