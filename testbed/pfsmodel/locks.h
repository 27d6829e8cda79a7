/* locks.h: the cost of sharing a file between nodes. */
#ifndef ENSIO_PFSMODEL_LOCKS_H
#define ENSIO_PFSMODEL_LOCKS_H

#include "state.h"

/* A task reads or writes a file, which takes a lock. */
void locks_come(struct pfs *model, int32_t task, int32_t file);

/* Sets the extra work of a write whose ends lie inside a stripe of a shared file: the target reads such a stripe,
 * merges it and writes it again. If the write begins inside a stripe other than the task's last one, another task held
 * its lock, which is called back at a further cost. Returns 1 if there is such an end: the bytes cannot stay in the
 * cache then. */
int locks_write(struct pfs *model, int32_t task);

/* The factor by which the number of writers increases the work of a write to the file. */
double locks_writers(const struct pfs *model, int32_t file);

#endif
