/* fail.h: ends a simulation that cannot continue. */
#ifndef ENSIO_SIMULATE_FAIL_H
#define ENSIO_SIMULATE_FAIL_H

#include <stddef.h>
#include <stdlib.h>

#define EXIT_USAGE 2 /* besides EXIT_FAILURE: the plan, the settings or the usage is wrong */

/* Prints one sentence to standard error and ends the program with `status`. */
_Noreturn void fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* For memory with scattered accesses, task by task: with pages of 4 KiB, address translation dominates. */
void want_large_pages(void *memory, size_t bytes);

/* Allocates zeroed memory, or ends the program. Large blocks occupy pages only where they are used. */
void *zeroed(size_t count, size_t bytes, const char *what);

#endif
