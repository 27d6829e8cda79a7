/* queue_heap.h: which queue is done with something next: a heap of the queues that have work. */
#ifndef ENSIO_PFSMODEL_QUEUE_HEAP_H
#define ENSIO_PFSMODEL_QUEUE_HEAP_H

#include "state.h"

/* An entry has four children, which lie in one line of the processor's cache: the first entry is therefore the last of
 * its line. */
#define AGENDA_CHILDREN 4
#define AGENDA_FIRST (AGENDA_CHILDREN - 1)

void agenda_set(struct pfs *model, int32_t queue, int64_t time_ns);
void agenda_remove(struct pfs *model, int32_t queue);

/* The queue that is done with something next, where there is one. */
static inline struct agenda_entry agenda_next(const struct pfs *model)
{
    return *agenda_at(model, AGENDA_FIRST);
}

#endif
