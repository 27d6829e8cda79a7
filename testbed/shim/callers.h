/* callers.h: which slot of the shared state, and with it which caller of the model, a thread is.
 *
 * A rank's first thread to call has the slot of the rank's number, so that the model's noise for a task is the same in
 * each run; its other threads and its children get slots of their own on the same node. Where MPI does not say who is
 * which rank, each process is a task, numbered in order of their first calls. Called with the lock held.
 */
#ifndef ENSIO_SHIM_CALLERS_H
#define ENSIO_SHIM_CALLERS_H

#include "delay.h"

/* The caller's slot, found or taken; -1: all are taken. */
int32_t shim_slot_of(struct shim_state *state, struct shim_caller *caller);

/* From time to time: callers that are gone leave the model. */
void shim_look_for_gone(struct shim_state *state, int64_t now_ns);

#endif
