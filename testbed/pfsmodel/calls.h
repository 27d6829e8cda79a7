/* calls.h: the life of a call, from its beginning to the list of complete calls. */
#ifndef ENSIO_PFSMODEL_CALLS_H
#define ENSIO_PFSMODEL_CALLS_H

#include "state.h"

void call_begin(struct pfs *model, int32_t task);

/* The node serves the task's read or write now; `weight` is its share among all calls. */
void call_serve(struct pfs *model, int32_t task, float weight);

/* A part that the call waits for is complete. */
void call_part_done(struct pfs *model, int32_t task);

/* The remaining time of a stretched call has passed. */
void call_end(struct pfs *model, int32_t task);

/* The cache holds nothing of the task any more. */
void call_drained(struct pfs *model, int32_t task);

void call_give_up(struct pfs *model, int32_t task);

/* Takes a complete call from the list. */
void call_take(struct pfs *model, int32_t task);

#endif
