/* census.h: whether all ranks of MPI_COMM_WORLD are recorded.
 *
 * The recorder may talk over MPI only where every rank takes part: in a job of several programs some may not be traced,
 * and a barrier of the others would wait for them for ever. No rank can ask over MPI, for the question would wait as
 * well; and no variable of a launcher tells, since each task may have been started with the recorder or without. So the
 * ranks meet in a folder of the run directory before they say anything over MPI:
 *
 * 1. Rank 0 makes up a number that was never used before, and lays it down as `call`, before MPI_Init.
 * 2. After MPI_Init, every recorded rank that finds the call answers it with a link <number>.<rank>, as soon as its
 * children in a tree over the ranks have answered, and waits for the decision.
 * 3. When rank 0's children have answered, it lays the link <number>, which says "yes". Whoever has waited for too long
 * lays it with "no". Laying a link is atomic: there is one decision, the first, and everyone keeps to that.
 *
 * "yes" is therefore said only if every rank has answered a number of this very launch, and all of those read the
 * decision before they go on. Nobody waits without a limit: not for a rank that is not traced, not for a file system
 * that shows files of other nodes late or never. The answer then is "no", which costs a good many niceties and no
 * truth.
 *
 * The answer "yes" stands until the end, for what is to be done together then runs within the real MPI_Finalize, by
 * whatever way the program came there (finalize.h).
 */
#ifndef ENSIO_LAYERS_MPI_CENSUS_H
#define ENSIO_LAYERS_MPI_CENSUS_H

/* Before MPI_Init: lays the call, if the launcher says that this is rank 0. */
void ensio_census_post(void);

/* After MPI_Init: finds the answer, which is the same in all ranks. `spawned`: by another job, so that
 * this world's ranks cannot all be met. Returns the answer. */
int ensio_census_agree(int rank, int tasks, int spawned);

/* After a "yes", and once everyone is known to have read it: takes the links away; the folder goes with `last`, when
 * everyone is known to have done so. */
void ensio_census_cleanup(int last);

/* 1: all ranks of MPI_COMM_WORLD are recorded and know it, hence collective calls over it are safe until the end of the
 * functions of finalize.h; the same in every rank. 0: not so, or not known. */
int ensio_census_all_recorded(void);

#endif
