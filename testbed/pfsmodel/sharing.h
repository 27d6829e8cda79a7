/* sharing.h: queues whose work is done all at once, each part at a speed in proportion to its weight (processor
 * sharing), and the heap that says which queue is done with something next. */
#ifndef ENSIO_PFSMODEL_SHARING_H
#define ENSIO_PFSMODEL_SHARING_H

#include "queue_heap.h"
#include "state.h"

/* Puts work of so many ns (at full speed and alone) into a queue. Returns 1, or 0 if there is no part left for it: then
 * it is done at once. */
int sharing_add(struct pfs *model, int32_t queue, enum part_kind kind, int32_t owner, uint32_t call, double work_ns,
                float weight);

/* A part that is done at that time, whatever else happens. Returns the same. */
int sharing_at(struct pfs *model, int64_t time_ns, enum part_kind kind, int32_t owner, uint32_t call);

/* The owner's call is given up: what it has in the queues is nobody's any more, and gives its share back. */
void sharing_give_up(struct pfs *model, int32_t owner, uint32_t call);

/* Brings the heap up to what has been put in and taken out since: it is not looked at before. */
void sharing_settle(struct pfs *model);

/* When something next happens; INT64_MAX: nothing will. */
static inline int64_t sharing_next_ns(const struct pfs *model)
{
    return model->queue_heap_count ? queue_heap_next(model).time_ns : INT64_MAX;
}

/* Brings the model to the time at which something next happens, which there must be. Returns 1 and a copy of the part
 * that is done and taken out, or 0 if only a speed changed. The heap is to be settled before the next step. */
int sharing_step(struct pfs *model, struct part *done);

#endif
