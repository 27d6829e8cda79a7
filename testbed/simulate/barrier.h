/* barrier.h: moments at which all tasks wait for each other. */
#ifndef ENSIO_SIMULATE_BARRIER_H
#define ENSIO_SIMULATE_BARRIER_H

#include "simulation.h"

/* A task comes to its step's barrier. When the last one comes, all go on, after what the messages take. */
void barrier_arrive(struct simulation *simulation, int32_t number, int64_t now_ns);

#endif
