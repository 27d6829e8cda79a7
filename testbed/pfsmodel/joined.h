/* joined.h: tasks of a node that read the same bytes at the same time share one request. */
#ifndef ENSIO_PFSMODEL_JOINED_H
#define ENSIO_PFSMODEL_JOINED_H

#include "state.h"

/* Whether another task of the node reads the same bytes now: the call then ends when that of the other task ends.
 * Otherwise later calls can join this one. */
int joined_read(struct pfs *model, int32_t id);

/* The task's call has ended or was cancelled: those that have joined it end too. */
void joined_end(struct pfs *model, int32_t id);

#endif
