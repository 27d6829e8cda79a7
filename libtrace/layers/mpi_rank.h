/* mpi_rank.h: at MPI_Init, MPI itself says which task this is. */
#ifndef ENSIO_LAYERS_MPI_RANK_H
#define ENSIO_LAYERS_MPI_RANK_H

/* Asks MPI for rank and number of tasks, if `status` says that it was initialised. */
void ensio_ask_rank(int status);

#endif
