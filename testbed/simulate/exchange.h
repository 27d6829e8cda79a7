/* exchange.h: messages between pairs of tasks. */
#ifndef ENSIO_SIMULATE_EXCHANGE_H
#define ENSIO_SIMULATE_EXCHANGE_H

#include "simulation.h"

/* Posts the messages of the task's current operation and of those of the same call that follow it in the step, and
 * waits for all of them. A message arrives when both tasks have posted it and its bytes have passed the nodes'
 * links. */
void exchange(struct simulation *simulation, int32_t number, int64_t now_ns);

#endif
