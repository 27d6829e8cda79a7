/* fuse_callers.h: who makes the request that FUSE hands over: which process, which thread, which rank of MPI. */
#ifndef ENSIO_SHIM_FUSE_CALLERS_H
#define ENSIO_SHIM_FUSE_CALLERS_H

#include "delay.h"

/* The rank is looked up in the environment that the process was started with (/proc/PID/environ). 0: nobody who can be
 * found. */
int shim_fuse_caller(int32_t tid, struct shim_caller *caller);

/* Remembers the slot that the caller got. */
void shim_fuse_caller_update(const struct shim_caller *caller);

#endif
