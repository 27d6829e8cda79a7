/* accumulate.h: adds events to the cells of the summary, one by one. */
#ifndef ENSIO_SUMMARY_ACCUMULATE_H
#define ENSIO_SUMMARY_ACCUMULATE_H

#include "cells.h"
#include "drain.h"

/* The kind of the last event. Most events are of the same kind as the one before, and go into the same cell while their
 * ordinal is below `until`. */
struct ensio_run_cache {
    uint64_t what; /* file, call and depth in one word */
    uint64_t requested;
    uint64_t *counter;
    uint64_t until;
    struct ensio_place *place;
};

/* The cache before the first event. */
struct ensio_run_cache ensio_empty_run_cache(void);

/* Adds an event. Returns whether it is one of the slow ones of its cell, or -1 without space for the cell. */
int ensio_add_event(struct ensio_cursor *cursor, const struct ensio_event *event, struct ensio_run_cache *cache,
                    uint64_t rate);

/* Adds a run of events of the last kind that change no extreme of the cell. The counts are stored after each event.
 * Returns the index of the first event that does not belong to the run. */
uint32_t ensio_add_run(struct ensio_cursor *cursor, uint32_t at, uint32_t end, struct ensio_run_cache *cache,
                       uint64_t rate);

#endif
