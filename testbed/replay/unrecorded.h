/* unrecorded.h: what a replay reads and says for itself.
 *
 * A replay is recorded, and its record is to hold the plan's calls. What belongs to the replay alone goes by raw system
 * calls, which no recorder sees and no model of a file system delays; and its MPI calls are those of the profiling
 * interface (PMPI).
 */
#ifndef ENSIO_REPLAY_UNRECORDED_H
#define ENSIO_REPLAY_UNRECORDED_H

#include <stddef.h>

/* Returns a descriptor for reading, or -1 with errno. */
int unrecorded_open(const char *path);

/* Reads all of `bytes` from the descriptor's position on. Returns 0; -1 if they are not there, or cannot be read. */
int unrecorded_read(int descriptor, void *memory, size_t bytes);

/* Writes as much to a descriptor as it takes. */
void unrecorded_write(int descriptor, const void *memory, size_t bytes);

void unrecorded_close(int descriptor);

/* Makes an empty file, unless there is one of this name. Returns 0, or -1 with errno. */
int unrecorded_make(const char *path);

#endif
