/* streams.h: each task's use of a few files. */
#ifndef ENSIO_PFSMODEL_STREAMS_H
#define ENSIO_PFSMODEL_STREAMS_H

#include "state.h"

/* The state of the file of the task's call. Beyond PFS_STREAMS files, the least recently used one is forgotten. */
struct stream *streams_of(struct task *task);

/* The task's call opens or closes its file. */
void streams_open(struct pfs *model, int32_t task);
void streams_close(struct pfs *model, int32_t task);

/* The task has ended, and its files are closed. */
void streams_forget(struct pfs *model, int32_t task);

#endif
