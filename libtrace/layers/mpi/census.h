/* census.h: whether all ranks of MPI_COMM_WORLD are recorded.
 *
 * The recorder may communicate over MPI only if every rank takes part. In a job of several programs, some may not be
 * traced, and a barrier of the others would never end. Asking over MPI would block in the same way, and no launcher
 * variable helps, because each task may have been started with or without the recorder. Before they communicate, the
 * ranks therefore take a census in a folder of the run directory:
 *
 * 1. Before MPI_Init, rank 0 posts a new unique number as `call`.
 *
 * 2. After MPI_Init, every recorded rank that finds the call answers it with a link <number>.<rank>, as soon as its
 * children in a tree of ranks have answered, and waits for the decision.
 *
 * 3. When rank 0's children have answered, it creates the link <number> with the value "yes". A rank that has waited
 * too long creates it with "no". Creating a link is atomic, so the first decision is the only one, and every rank
 * follows it.
 *
 * The decision is "yes" only if every rank has answered a number of this launch, and all of them read the decision
 * before they continue. Every wait has a limit: for ranks that are not traced, and for file systems that show files of
 * other nodes late or never. The decision is then "no", which costs convenience but no correctness.
 *
 * A "yes" remains valid until the end, because collective work at the end runs within the real MPI_Finalize, however
 * the program calls it (finalize.h). */
#ifndef ENSIO_LAYERS_MPI_CENSUS_H
#define ENSIO_LAYERS_MPI_CENSUS_H

/* Before MPI_Init: posts the call, if the launcher says that this is rank 0. */
void ensio_census_post(void);

/* After MPI_Init: takes part in the census, and returns the decision, which is the same in all ranks. `spawned`:
 * another job started this one, so that not all ranks of this world can answer. */
int ensio_census_agree(int rank, int tasks, int spawned);

/* After a "yes" that all ranks have read: removes the links. `last`: removes the folder, after all ranks have removed
 * their links. */
void ensio_census_cleanup(int last);

/* 1: all ranks of MPI_COMM_WORLD are recorded and know it, so collective calls over it are safe until the functions of
 * finalize.h have ended; the same in every rank. 0: otherwise. */
int ensio_census_all_recorded(void);

/* Why it is not so, as a part of a sentence. */
const char *ensio_census_why_not(void);

#endif
