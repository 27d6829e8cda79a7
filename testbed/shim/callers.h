/* callers.h: the slot of a thread in the shared state, which is its caller in the model.
 *
 * A rank's first calling thread has the slot with the rank's number, so that the model's noise for a task is the same
 * in each run. Its other threads and its children get separate slots on the same node. If MPI ranks are unknown, each
 * process is a task, numbered in order of first calls. The caller holds the lock. */
#ifndef ENSIO_SHIM_CALLERS_H
#define ENSIO_SHIM_CALLERS_H

#include "delay.h"

/* The caller's slot, found or assigned; -1: all are taken. */
int32_t shim_slot_of(struct shim_state *state, struct shim_caller *caller);

/* From time to time: removes callers that have ended from the model. */
void shim_look_for_gone(struct shim_state *state, int64_t now_ns);

#endif
