/* streams.h: what is known of each task's use of a few files. */
#ifndef ENSIO_PFSMODEL_STREAMS_H
#define ENSIO_PFSMODEL_STREAMS_H

#include "state.h"

/* What is known of the file of the task's call. Of more than PFS_STREAMS files the one that was unused for longest is
 * forgotten. */
struct stream *streams_of(struct task *task);

/* The task's call opens or closes its file. */
void streams_open(struct pfs *model, int32_t task);
void streams_close(struct pfs *model, int32_t task);

/* The task is gone, and so are the files that it had open. */
void streams_forget(struct pfs *model, int32_t task);

#endif
