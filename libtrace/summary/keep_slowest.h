/* keep_slowest.h: mode tail, in which of all events only the slowest are kept. */
#ifndef ENSIO_SUMMARY_KEEP_SLOWEST_H
#define ENSIO_SUMMARY_KEEP_SLOWEST_H

#include "cells.h"
#include "drain.h"

#include <core/recorder.h>
#include <core/settings.h>

/* From this many calls on a cell knows what is slow. */
#define ENSIO_LEAST_SLOW_SAMPLE 100

/* Finds the bin from which on calls are slower than 99 of 100 of the cell so far. */
void ensio_update_slow_bin(struct ensio_place *place);

/* Whether a call that took so long is slower than 99 of 100 calls of its cell before it. */
static inline int ensio_is_slow(struct ensio_place *place, uint32_t bin)
{
    if (ENSIO_LIKELY(ensio_settings.mode != ENSIO_TAIL) || place->cell->count < ENSIO_LEAST_SLOW_SAMPLE)
        return 0;
    if (ENSIO_UNLIKELY(place->cell->count >= place->slow_due))
        ensio_update_slow_bin(place);
    return bin >= place->slow_bin;
}

/* Keeps an event in a window of its thread for slow events. 0, or -1 where no space is left. The caller holds the lock.
 */
int ensio_keep_slowest(struct ensio_cursor *cursor, const struct ensio_event *event);

#endif
