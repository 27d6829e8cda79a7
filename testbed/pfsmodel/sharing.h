/* sharing.h: queues that serve all their work concurrently, each part in proportion to its weight (processor sharing),
 * and the heap of their next events. */
#ifndef ENSIO_PFSMODEL_SHARING_H
#define ENSIO_PFSMODEL_SHARING_H

#include "queue_heap.h"
#include "state.h"

/* Adds work to a queue, in ns at full speed without contention. Returns 1, or 0 if there is no room; the work is then
 * complete immediately. */
int sharing_add(struct pfs *model, int32_t queue, enum part_kind kind, int32_t owner, double work_ns, float weight);

/* Adds a part that completes at a given time. Returns the same. */
int sharing_at(struct pfs *model, int64_t time_ns, enum part_kind kind, int32_t owner);

/* Cancels the call of a task: its parts have no owner any more, and release their shares. */
void sharing_give_up(struct pfs *model, int32_t owner);

/* Updates the heap after changes. It must not be read before. */
void sharing_settle(struct pfs *model);

/* The time of the next event; INT64_MAX: there is none. */
static inline int64_t sharing_next_ns(const struct pfs *model)
{
    return model->queue_heap_count ? queue_heap_next(model).time_ns : INT64_MAX;
}

/* Advances the model to the next event, which must exist. Returns 1 and a copy of the completed part, or 0 if only a
 * speed changed. The heap must be updated before the next step. */
int sharing_step(struct pfs *model, struct part *done);

#endif
