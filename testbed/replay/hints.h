/* hints.h: the hints of a plan. Keys that begin with "hdf5." are for HDF5 (hdf5_settings.h), all others for MPI-IO. */
#ifndef ENSIO_REPLAY_HINTS_H
#define ENSIO_REPLAY_HINTS_H

#include "plan.h"

#include <mpi.h>

#define HDF5_HINTS "hdf5."

int is_for_hdf5(const struct plan_hint *hint);

/* The hints for MPI-IO, which the caller frees by PMPI_Info_free; MPI_INFO_NULL if the plan has none. */
MPI_Info hints_for_mpiio(const struct plan *plan);

#endif
