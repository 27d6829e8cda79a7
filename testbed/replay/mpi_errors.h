/* mpi_errors.h: MPI's description of a failed call. */
#ifndef ENSIO_REPLAY_MPI_ERRORS_H
#define ENSIO_REPLAY_MPI_ERRORS_H

#include "calls.h"

/* Whether a code of MPI means success; otherwise MPI's message becomes the target's problem. */
int mpi_succeeded(struct call_target *target, int code);

#endif
