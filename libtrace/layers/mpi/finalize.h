/* finalize.h: what is done at the beginning and at the end of MPI, while MPI may be called.
 *
 * The end is where MPI_Finalize deletes the attributes of MPI_COMM_SELF, before it does anything else: a program comes
 * there whether it calls MPI_Finalize or PMPI_Finalize, from C or Fortran, out of a relinked object or a shared
 * library. Were the end in our wrapper of MPI_Finalize, one rank that goes round it would leave the others waiting.
 */
#ifndef ENSIO_LAYERS_MPI_FINALIZE_H
#define ENSIO_LAYERS_MPI_FINALIZE_H

/* After MPI_Init, in every recorded rank; a second time it does nothing. */
void ensio_mpi_initialized(int rank, int tasks);

#endif
