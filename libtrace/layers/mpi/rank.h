/* rank.h: at MPI_Init, MPI itself says which task this is. */
#ifndef ENSIO_LAYERS_MPI_RANK_H
#define ENSIO_LAYERS_MPI_RANK_H

#include <stdint.h>

/* Asks MPI for rank and number of tasks, if `status` says that it was initialised. */
void ensio_query_rank(int status);

/* MPI_Finalize is under way in its wrapper, since then. */
extern uint64_t ensio_finalize_start;

/* Stores that call, if a wrapper is in it, as it is when all ranks have come to it: what follows is the recorder's own
 * work. From then on it is stored, and the wrapper does not do it again. */
void ensio_finalize_store(void);
extern int ensio_finalize_is_stored;

#endif
