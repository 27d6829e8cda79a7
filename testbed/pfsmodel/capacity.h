/* capacity.h: how fast a queue works: what slow nodes and targets and other jobs take away. */
#ifndef ENSIO_PFSMODEL_CAPACITY_H
#define ENSIO_PFSMODEL_CAPACITY_H

#include "state.h"

void capacity_create(struct pfs *model);

/* Sets the queue's speed to what it is at its time. */
void capacity_set(struct pfs *model, int32_t queue);

/* The earlier of `time_ns` and when the queue's speed may change next after `from_ns`. */
int64_t capacity_time_ns(const struct pfs *model, int32_t queue, int64_t from_ns, int64_t time_ns);

#endif
