/* twophase.h: two-phase collective reads and writes: tasks send their bytes to aggregators, which access the file.
 *
 * The range from the first to the last byte of all tasks is divided into file domains of equal length, one for each
 * aggregator. An aggregator processes its domain in chunks of its buffer size: it receives the bytes of a chunk, in a
 * message from each task that has some, then makes one call for each stretch without holes. The messages are those of
 * ROMIO (ADIOI_GEN_WriteStridedColl): see domains_ns in barrier.c, and for each chunk the sizes (MPI_Alltoall) and the
 * data. (R. Thakur, W. Gropp, E. Lusk: Data sieving and collective I/O in ROMIO, Frontiers 1999.) */
#ifndef ENSIO_SIMULATE_TWOPHASE_H
#define ENSIO_SIMULATE_TWOPHASE_H

#include "simulation.h"

/* Divides the range of the current collective call into file domains. */
void share_domains(struct simulation *simulation);

/* Continues with a task's domain. 0: it has none, or is finished; 1: the task waits. */
int aggregate(struct simulation *simulation, int32_t number, int64_t now_ns);

#endif
