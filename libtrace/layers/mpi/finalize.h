/* finalize.h: work at the beginning and at the end of MPI, while MPI may be called.
 *
 * The work at the end runs when MPI_Finalize deletes the attributes of MPI_COMM_SELF, before anything else. A program
 * reaches this point by MPI_Finalize or PMPI_Finalize, from C or Fortran, from a relinked object or a shared library.
 * In a wrapper of MPI_Finalize, one rank that bypasses the wrapper would block the others. */
#ifndef ENSIO_LAYERS_MPI_FINALIZE_H
#define ENSIO_LAYERS_MPI_FINALIZE_H

/* After MPI_Init, in every recorded rank. Further calls have no effect. */
void ensio_mpi_initialized(int rank, int tasks);

#endif
