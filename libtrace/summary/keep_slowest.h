/* keep_slowest.h: mode tail, which keeps only the slowest events. */
#ifndef ENSIO_SUMMARY_KEEP_SLOWEST_H
#define ENSIO_SUMMARY_KEEP_SLOWEST_H

#include "cells.h"
#include "drain.h"

#include <core/recorder.h>
#include <core/settings.h>

/* The smallest number of calls for which a cell has a threshold. */
#define ENSIO_LEAST_SLOW_SAMPLE 100

/* Updates the bin from which on calls are slower than 99 % of the cell's calls so far. */
void ensio_update_slow_bin(struct ensio_place *place);

/* Whether a call of this duration is slower than 99 % of the earlier calls of its cell. */
static inline int ensio_is_slow(struct ensio_place *place, uint32_t bin)
{
    if (ENSIO_LIKELY(ensio_settings.mode != ENSIO_TAIL) || place->cell->count < ENSIO_LEAST_SLOW_SAMPLE)
        return 0;
    if (ENSIO_UNLIKELY(place->cell->count >= place->slow_due))
        ensio_update_slow_bin(place);
    return bin >= place->slow_bin;
}

/* Keeps an event in its thread's window of slow events: 0, or -1 without space. `place` is that of its cell. The caller
 * holds the lock. */
int ensio_keep_slowest(struct ensio_cursor *cursor, struct ensio_place *place, const struct ensio_event *event);

/* At the end of a recording: the slowest calls of each function and size class become events unless they are, so that
 * short runs, whose cells have no threshold yet, have events too. The caller holds the lock and has drained all
 * windows. */
void ensio_keep_longest_calls(void);

#endif
