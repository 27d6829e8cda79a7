/* locks.h: what it costs that several nodes have one file. */
#ifndef ENSIO_PFSMODEL_LOCKS_H
#define ENSIO_PFSMODEL_LOCKS_H

#include "state.h"

/* A task comes to a file, by opening or writing it. */
void locks_come(struct pfs *model, int32_t task, int32_t file);

/* Sets the task's extra work of a write whose ends lie inside a stripe of a shared file. Returns 1 if the write cannot
 * stay in the cache: the lock on such a stripe is called back by the next node that wants it. */
int locks_write(struct pfs *model, int32_t task);

/* How many times as much work a write to the file is, because of all those who have it open. */
double locks_writers(const struct pfs *model, int32_t file);

#endif
