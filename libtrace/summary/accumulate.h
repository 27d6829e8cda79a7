/* accumulate.h: adding one event after the other to the cells that they belong to. */
#ifndef ENSIO_SUMMARY_ACCUMULATE_H
#define ENSIO_SUMMARY_ACCUMULATE_H

#include "cells.h"
#include "drain.h"

/* What the last event was. Most events are like the one before, and go into the same cell as long as their ordinal
 * stays below `until`. */
struct ensio_run_cache {
    uint64_t what; /* file, call and depth in one */
    uint64_t requested;
    uint64_t *counter;
    uint64_t until;
    struct ensio_place *place;
};

/* Before the first event. */
struct ensio_run_cache ensio_empty_run_cache(void);

/* Adds one event. Returns whether it is one of the slow ones of its cell, or -1 where there is no space for the cell.
 */
int ensio_add_event(struct ensio_cursor *cursor, const struct ensio_event *event, struct ensio_run_cache *cache,
                    uint64_t rate);

/* Adds events that are like the last one and nothing special, as most are: the sums stay in registers, and are stored
 * after each event all the same. Returns the first event that is something else. */
uint32_t ensio_add_run(struct ensio_cursor *cursor, uint32_t at, uint32_t end, struct ensio_run_cache *cache,
                       uint64_t rate);

#endif
