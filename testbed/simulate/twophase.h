/* twophase.h: collective reads and writes in two phases: tasks send their bytes to aggregators, which move them.
 *
 * The bytes of all tasks, from the first to the last, are cut into as many file domains as there are aggregators, of
 * equal length. An aggregator moves its domain chunk by chunk: as many bytes as its buffer holds come in, then one call
 * for each stretch without holes. (R. Thakur, W. Gropp, E. Lusk: Data sieving and collective I/O in ROMIO, Frontiers
 * 1999.)
 */
#ifndef ENSIO_SIMULATE_TWOPHASE_H
#define ENSIO_SIMULATE_TWOPHASE_H

#include "simulation.h"

/* Cuts the bytes of the call that all tasks are in into file domains. */
void share_domains(struct simulation *simulation);

/* Goes on with a task's domain. 0: it has none, or is done with it; 1: the task waits. */
int aggregate(struct simulation *simulation, int32_t number, int64_t now_ns);

#endif
