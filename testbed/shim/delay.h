/* delay.h: a call begins in the model, is made for real, and is delayed until the model completes it.
 *
 * One of the delayed callers, the leader, sleeps until the next event of the model, advances it, and wakes callers
 * whose calls are complete. The others sleep until they are woken, and check from time to time that the leader still
 * exists. */
#ifndef ENSIO_SHIM_DELAY_H
#define ENSIO_SHIM_DELAY_H

#include "state.h"

/* A calling thread. */
struct shim_caller {
    int32_t pid, tid;
    int32_t rank; /* of MPI; -1: the process is not an MPI task */
    int32_t slot; /* the slot it had last; 0 may be a wrong guess */
};

/* Its call. */
struct shim_call {
    uint16_t operation; /* enum pfs_operation */
    uint16_t through;
    uint64_t key; /* of the file; 0: none */
    int64_t offset, bytes;
};

/* A call that has begun; slot -1: it is not delayed. */
struct shim_ticket {
    int32_t slot;
    uint64_t sequence;
};

/* Neither function changes errno. */
struct shim_ticket shim_begin(struct shim_state *state, struct shim_caller *caller, const struct shim_call *call);
void shim_wait(struct shim_state *state, struct shim_ticket ticket);

#endif
