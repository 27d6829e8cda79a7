/* job_banner.h: the banner of an MPI program. */
#ifndef ENSIO_LAYERS_MPI_JOB_BANNER_H
#define ENSIO_LAYERS_MPI_JOB_BANNER_H

#include "abi.h"

/* At the end of MPI, in every rank that is recorded: adds up what all did, if everyone is recorded, and prints it on
 * rank 0. */
void ensio_job_banner(const struct ensio_mpi *mpi, int rank, int tasks);

#endif
