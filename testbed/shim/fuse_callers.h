/* fuse_callers.h: the process, thread and MPI rank that made a request of FUSE. */
#ifndef ENSIO_SHIM_FUSE_CALLERS_H
#define ENSIO_SHIM_FUSE_CALLERS_H

#include "delay.h"

/* The rank comes from the environment that the process was started with (/proc/PID/environ). 0: the caller cannot be
 * found. */
int shim_fuse_caller(int32_t tid, struct shim_caller *caller);

/* Remembers the slot that the caller got. */
void shim_fuse_caller_update(const struct shim_caller *caller);

#endif
