/* clock_barriers.h: barriers whose readings give the offsets between the clocks of nodes. */
#ifndef ENSIO_LAYERS_MPI_CLOCK_BARRIERS_H
#define ENSIO_LAYERS_MPI_CLOCK_BARRIERS_H

#include "abi.h"

/* In a job of several nodes, reads the clock before and after each of some barriers. All ranks call this, in MPI_Init
 * and in MPI_Finalize, if all are recorded. */
void ensio_clock_barriers(const struct ensio_mpi *mpi, int at_end);

#endif
