/* mpi_errors.h: what MPI says of a call that failed. */
#ifndef ENSIO_REPLAY_MPI_ERRORS_H
#define ENSIO_REPLAY_MPI_ERRORS_H

#include "calls.h"

/* Whether a code of MPI is none of an error; else MPI's words on it become the target's problem. */
int mpi_succeeded(struct call_target *target, int code);

#endif
