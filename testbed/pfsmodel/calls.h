/* calls.h: the life of a call, from its beginning to the list of those that are complete. */
#ifndef ENSIO_PFSMODEL_CALLS_H
#define ENSIO_PFSMODEL_CALLS_H

#include "state.h"

void call_begin(struct pfs *model, int32_t task);

/* The node serves the task's read or write now; `weight` is its share among all calls. */
void call_serve(struct pfs *model, int32_t task, float weight);

/* One of the parts that the call waits for is done. */
void call_part_done(struct pfs *model, int32_t task);

/* Nothing more comes for a call that was stretched out. */
void call_end(struct pfs *model, int32_t task);

/* Nothing of the task is in the cache any more. */
void call_drained(struct pfs *model, int32_t task);

void call_give_up(struct pfs *model, int32_t task);

/* Takes a complete call from the list. */
void call_take(struct pfs *model, int32_t task);

#endif
