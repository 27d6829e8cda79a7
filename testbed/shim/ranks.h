/* ranks.h: environment variables with the MPI rank of a process. */
#ifndef ENSIO_SHIM_RANKS_H
#define ENSIO_SHIM_RANKS_H

#include <stdint.h>

/* The rank according to the launcher; -1: unknown. `value_of` returns a variable's value, or NULL. */
int32_t shim_rank(const char *(*value_of)(const char *name, void *context), void *context);

#endif
