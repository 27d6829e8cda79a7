/* little_memory.h: programs under a limit of memory that is too low for the recorder beside them. */
#ifndef ENSIO_PROCESS_LITTLE_MEMORY_H
#define ENSIO_PROCESS_LITTLE_MEMORY_H

#include <stddef.h>

/* Bytes that ensio_lean_environment needs; 0: the next program has memory enough, or is not preloaded. */
size_t ensio_lean_bytes(char *const environment[]);

/* The environment without the preload library, in `room`. */
char *const *ensio_lean_environment(char *const environment[], void *room);

#endif
