/* streams.h: the buffer of a task's stream (STDIO), which makes few large calls of many small ones.
 *
 * A task has one buffer, that of the stream it used last: when it writes to another one, the bytes held back are
 * written before. What goes on between stream and file system is not recorded, as a recorder cannot see it in libc.
 */
#ifndef ENSIO_SIMULATE_STREAMS_H
#define ENSIO_SIMULATE_STREAMS_H

#include "simulation.h"

/* Writes what is held back, where the present call makes that necessary: 1, and the task waits; else 0. */
int flush_stream(struct simulation *simulation, int32_t number, int64_t now_ns);

/* The data of the present call go to or come from the buffer, or the file system; the task waits. */
void move_stream_data(struct simulation *simulation, int32_t number, int64_t now_ns);

#endif
