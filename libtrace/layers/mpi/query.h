/* query.h: properties of MPI types, statuses, errors and handles. */
#ifndef ENSIO_LAYERS_MPI_QUERY_H
#define ENSIO_LAYERS_MPI_QUERY_H

#include "abi.h"

/* Bytes of one element of a type; 0 if the type is invalid. */
int64_t ensio_mpi_type_bytes(uintptr_t type);

/* The errno for the class of an MPI error (docs/reference/formats/spool.md lists them); 0 for MPI_SUCCESS. */
int ensio_mpi_errno(int code);

/* Bytes moved by a call that returned `result` and filled `status`, or minus an errno. `in_array`: the status is one of
 * several, and may contain an error. */
int64_t ensio_mpi_moved(int result, const char *status, int in_array);

/* Whether a Fortran program passes MPI_STATUS_IGNORE or MPI_STATUSES_IGNORE. */
int ensio_mpi_fortran_ignored(const void *status);

/* Conversions of Fortran handles to C handles. */
uintptr_t ensio_mpi_file_f2c(int handle);
uintptr_t ensio_mpi_type_f2c(int handle);
uintptr_t ensio_mpi_request_f2c(int handle);
uintptr_t ensio_mpi_comm_f2c(int handle);
uintptr_t ensio_mpi_info_f2c(int handle);

#endif
