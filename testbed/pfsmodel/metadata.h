/* metadata.h: the metadata server: a few threads, and a FIFO queue of requests. */
#ifndef ENSIO_PFSMODEL_METADATA_H
#define ENSIO_PFSMODEL_METADATA_H

#include "state.h"

void metadata_create(struct pfs *model);

/* The task's call sends a request; call_part_done() is called once for it. */
void metadata_ask(struct pfs *model, int32_t task);

/* A thread has served a task's request, whatever the task does now. */
void metadata_done(struct pfs *model);

/* Removes the task's request, if it still waits for a thread. */
void metadata_give_up(struct pfs *model, int32_t task);

#endif
