/* rank.h: the rank of this process, which MPI reports at MPI_Init. */
#ifndef ENSIO_LAYERS_MPI_RANK_H
#define ENSIO_LAYERS_MPI_RANK_H

#include <stdint.h>

/* Queries MPI for rank and number of tasks, if `status` is that of a successful initialisation. */
void ensio_query_rank(int status);

/* When the wrapper of MPI_Finalize was entered; 0: not yet. */
extern uint64_t ensio_finalize_start;

/* Stores the event of MPI_Finalize when all ranks have reached it, because what follows is the recorder's own work. The
 * wrapper then does not store it again. */
void ensio_finalize_store(void);
extern int ensio_finalize_is_stored;

#endif
