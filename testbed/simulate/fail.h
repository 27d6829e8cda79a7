/* fail.h: the end of a simulation that cannot go on. */
#ifndef ENSIO_SIMULATE_FAIL_H
#define ENSIO_SIMULATE_FAIL_H

#include <stddef.h>
#include <stdlib.h>

#define EXIT_USAGE 2 /* beside EXIT_FAILURE: the plan, the settings or the way of starting is wrong */

/* Prints one sentence to standard error and ends the program with `status`. */
_Noreturn void fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Memory that is read and written all over, task by task: with pages of 4 KiB, finding the page is dearer than the
 * rest. */
void want_large_pages(void *memory, size_t bytes);

/* Zeroed memory, or the end of the program. Large blocks take pages only where they are touched. */
void *zeroed(size_t count, size_t bytes, const char *what);

#endif
