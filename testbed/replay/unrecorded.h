/* unrecorded.h: input and output of the replay itself.
 *
 * A replay is recorded, and the recording must hold only the plan's calls. The replay's own I/O uses raw system calls,
 * which no recorder sees and no model delays; its own MPI calls use the profiling interface (PMPI). */
#ifndef ENSIO_REPLAY_UNRECORDED_H
#define ENSIO_REPLAY_UNRECORDED_H

#include <stddef.h>

/* Returns a descriptor for reading, or -1 with errno. */
int unrecorded_open(const char *path);

/* Reads `bytes` bytes from the descriptor's position on. Returns 0, or -1 if they are missing or cannot be read. */
int unrecorded_read(int descriptor, void *memory, size_t bytes);

/* Writes to a descriptor until it fails. */
void unrecorded_write(int descriptor, const void *memory, size_t bytes);

void unrecorded_close(int descriptor);

/* Makes an empty file, unless the name exists. Returns 0, or -1 with errno. */
int unrecorded_make(const char *path);

#endif
