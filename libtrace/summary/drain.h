/* drain.h: adding the events of windows to the process's summary. */
#ifndef ENSIO_SUMMARY_DRAIN_H
#define ENSIO_SUMMARY_DRAIN_H

#include "exclusive_time.h"

#include <ensio/event.h>
#include <stdint.h>

/* What is known of a thread from one drain to the next. */
struct ensio_cursor {
    struct ensio_window *window; /* in which the thread's events lie */
    struct ensio_window *kept;   /* mode tail: in which its slow events are kept */
    struct ensio_cursor *next;   /* in the list that it is in */
    /* ticks from which on a window for events is asked for again, where there was no space */
    uint64_t events_due;
    uint64_t events_bytes; /* length of the last window for events */
    struct ensio_nested_time nested_time;
};

/* All that follows is called with the lock held. */

/* One for a thread that begins, given back when it ends; NULL where no memory is left. */
struct ensio_cursor *ensio_cursor_take(void);
void ensio_cursor_release(struct ensio_cursor *cursor);

/* How many threads have one. */
uint32_t ensio_cursor_count(void);

/* Adds the events of the thread's window up to slot `end`, so far as they are not added yet. Slots that were claimed
 * but not filled are passed over, or, where somebody may yet fill them, end it. Returns whether there is nothing left
 * to add. */
int ensio_drain(struct ensio_cursor *cursor, uint32_t end, int may_be_filled);

/* Slots of a window. */
static inline uint32_t ensio_window_slots(const struct ensio_window *window)
{
    return (uint32_t)((window->bytes - ENSIO_WINDOW_HEADER_BYTES) / sizeof(struct ensio_event));
}

static inline struct ensio_event *ensio_window_events(struct ensio_window *window)
{
    return (struct ensio_event *)(void *)((char *)window + ENSIO_WINDOW_HEADER_BYTES);
}

/* Adds what lies in the windows of all threads but one; its own events a thread adds itself. */
void ensio_drain_others(const struct ensio_cursor *own);

/* The threads are another process's. */
void ensio_drain_forget(void);

#endif
