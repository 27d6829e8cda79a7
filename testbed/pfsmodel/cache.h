/* cache.h: the write-back cache of a node, which its tasks share equally. */
#ifndef ENSIO_PFSMODEL_CACHE_H
#define ENSIO_PFSMODEL_CACHE_H

#include "state.h"

/* Absorbs as many of the first bytes of the task's write as there is room for, and starts to write them back. Returns
 * their number. */
int64_t cache_absorb(struct pfs *model, int32_t task);

/* A part of a drain is complete. Returns 1 if the cache holds nothing of the task any more. */
int cache_part_done(struct pfs *model, int32_t task);

#endif
