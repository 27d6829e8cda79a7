/* barrier.h: synchronisation of all tasks. */
#ifndef ENSIO_SIMULATE_BARRIER_H
#define ENSIO_SIMULATE_BARRIER_H

#include "simulation.h"

/* A task arrives at its step's barrier. After the last arrival and the time of the messages, all tasks continue. */
void barrier_arrive(struct simulation *simulation, int32_t number, int64_t now_ns);

/* The time in which the messages of all other tasks to each task enter through the links of the nodes, seconds. */
double gathered_s(const struct simulation *simulation, double bytes_of_task);

#endif
