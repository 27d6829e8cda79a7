/* metadata.h: the metadata server: a few threads, and requests that wait for one in the order in which they came. */
#ifndef ENSIO_PFSMODEL_METADATA_H
#define ENSIO_PFSMODEL_METADATA_H

#include "state.h"

void metadata_create(struct pfs *model);

/* The task's call asks the server; call_part_done() comes once for it. */
void metadata_ask(struct pfs *model, int32_t task);

/* A thread is done with the request of a task, whatever that does now. */
void metadata_done(struct pfs *model);

/* The task's request is given up, if it still waits for a thread. */
void metadata_give_up(struct pfs *model, int32_t task);

#endif
