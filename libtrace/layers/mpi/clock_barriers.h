/* clock_barriers.h: barriers, whose readings tell how the clocks of the nodes stand to each other. */
#ifndef ENSIO_LAYERS_MPI_CLOCK_BARRIERS_H
#define ENSIO_LAYERS_MPI_CLOCK_BARRIERS_H

#include "abi.h"

/* Where a job has several nodes, takes a reading before and after each of some barriers. To be called by all ranks
 * together, in MPI_Init and in MPI_Finalize, where everyone is recorded. */
void ensio_clock_barriers(const struct ensio_mpi *mpi, int at_end);

#endif
