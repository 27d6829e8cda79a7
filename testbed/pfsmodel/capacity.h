/* capacity.h: the speed of a queue, reduced by slow nodes and targets and by other jobs. */
#ifndef ENSIO_PFSMODEL_CAPACITY_H
#define ENSIO_PFSMODEL_CAPACITY_H

#include "state.h"

void capacity_create(struct pfs *model);

/* Sets the queue's speed to that at its current time. */
void capacity_set(struct pfs *model, int32_t queue);

/* The earlier of `time_ns` and the next time after `from_ns` at which the queue's speed may change. */
int64_t capacity_time_ns(const struct pfs *model, int32_t queue, int64_t from_ns, int64_t time_ns);

#endif
