/* delay.h: a call is begun in the model, made for real, and held back until the model says that it is complete.
 *
 * Of those who are held back one, the leader, waits until something happens in the model; it brings the model forward,
 * and wakes whose calls are complete. The others sleep until they are woken, and now and then look whether the leader
 * is still there.
 */
#ifndef ENSIO_SHIM_DELAY_H
#define ENSIO_SHIM_DELAY_H

#include "state.h"

/* Who calls. */
struct shim_caller {
    int32_t pid, tid;
    int32_t rank; /* of MPI; -1: the process is no task of MPI's */
    int32_t slot; /* which it had last; 0 may be a wrong guess */
};

/* What it calls. */
struct shim_call {
    uint16_t operation; /* enum pfs_operation */
    uint16_t through;
    uint64_t key; /* of the file; 0: none */
    int64_t offset, bytes;
};

/* A call that was begun; slot -1: it is not held back. */
struct shim_ticket {
    int32_t slot;
    uint64_t sequence;
};

/* Neither changes errno. */
struct shim_ticket shim_begin(struct shim_state *state, struct shim_caller *caller, const struct shim_call *call);
void shim_wait(struct shim_state *state, struct shim_ticket ticket);

#endif
