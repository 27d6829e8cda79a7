/* streams.h: the buffer of a task's stream (STDIO), which turns many small calls into few large ones.
 *
 * A task has one buffer, that of the stream it used last. If it writes to another stream, buffered bytes are written
 * first. Calls between stream and file system are not recorded, because a recorder cannot see them in libc. */
#ifndef ENSIO_SIMULATE_STREAMS_H
#define ENSIO_SIMULATE_STREAMS_H

#include "simulation.h"

/* Writes buffered bytes if the current call requires it: 1, and the task waits; else 0. */
int flush_stream(struct simulation *simulation, int32_t number, int64_t now_ns);

/* Moves the data of the current call to or from the buffer or the file system; the task waits. */
void move_stream_data(struct simulation *simulation, int32_t number, int64_t now_ns);

#endif
