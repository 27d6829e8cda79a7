/* little_memory.h: programs under a limit of memory that is too low for the recorder beside them. */
#ifndef ENSIO_CORE_LITTLE_MEMORY_H
#define ENSIO_CORE_LITTLE_MEMORY_H

#include <stddef.h>

/* Whether this process, or one that it starts, has too little memory. */
int ensio_memory_is_short(void);

/* Prints that `program` is not recorded for that reason. */
void ensio_say_memory_is_short(const char *program);

/* Bytes that ensio_lean_environment needs; 0: the next program has memory enough, or is not preloaded. */
size_t ensio_lean_bytes(char *const environment[]);

/* The environment without the preload library, in `room`. */
char *const *ensio_lean_environment(char *const environment[], void *room);

#endif
