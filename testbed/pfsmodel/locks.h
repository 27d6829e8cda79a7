/* locks.h: what it costs that several nodes have one file. */
#ifndef ENSIO_PFSMODEL_LOCKS_H
#define ENSIO_PFSMODEL_LOCKS_H

#include "state.h"

/* A task comes to a file, by opening or writing it. */
void locks_come(struct pfs *model, int32_t task, int32_t file);

/* Sets the task's extra work of a write whose ends lie inside a stripe of a shared file: the target reads such a
 * stripe, merges it and writes it again. Where the write begins inside a stripe that is not the task's own last one,
 * somebody else had it: the lock on it is called back, which takes more work. Returns 1 if there is such an end: the
 * bytes cannot stay in the cache then. */
int locks_write(struct pfs *model, int32_t task);

/* How many times as much work a write to the file is, because of all those who have it open. */
double locks_writers(const struct pfs *model, int32_t file);

#endif
