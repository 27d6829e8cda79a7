/* job_banner.h: the banner of an MPI program. */
#ifndef ENSIO_LAYERS_MPI_JOB_BANNER_H
#define ENSIO_LAYERS_MPI_JOB_BANNER_H

#include "abi.h"

/* At the end of MPI, in every recorded rank: reduces the totals of all ranks, if all are recorded, and prints them on
 * rank 0. */
void ensio_job_banner(const struct ensio_mpi *mpi, int rank, int tasks);

#endif
