/* ranks.h: which variables of the environment say which rank of MPI a process is. */
#ifndef ENSIO_SHIM_RANKS_H
#define ENSIO_SHIM_RANKS_H

#include <stdint.h>

/* As far as launchers say it; -1: none does. `value_of` gives a variable's value, or NULL. */
int32_t shim_rank(const char *(*value_of)(const char *name, void *context), void *context);

#endif
