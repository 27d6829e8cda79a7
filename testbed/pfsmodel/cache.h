/* cache.h: the write-back cache of a node, of which each task has its share. */
#ifndef ENSIO_PFSMODEL_CACHE_H
#define ENSIO_PFSMODEL_CACHE_H

#include "state.h"

/* Takes as many of the first bytes of the task's write as there is room for, and begins to write them out. Returns how
 * many. */
int64_t cache_absorb(struct pfs *model, int32_t task);

/* A part of what is written out is done. Returns 1 if nothing of the task is in the cache any more. */
int cache_part_done(struct pfs *model, int32_t task);

#endif
