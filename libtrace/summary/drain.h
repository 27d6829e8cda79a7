/* drain.h: adds the events of windows to the process's summary. */
#ifndef ENSIO_SUMMARY_DRAIN_H
#define ENSIO_SUMMARY_DRAIN_H

#include "exclusive_time.h"

#include <ensio/event.h>
#include <stdint.h>

/* State of a thread between two drains. */
struct ensio_cursor {
    struct ensio_window *window; /* the window of the thread's events */
    struct ensio_window *kept;   /* mode tail: the window of its slow events */
    struct ensio_cursor *next;   /* next in the list of active or unused cursors */
    /* ticks after which a window of events is requested again, if there was no space */
    uint64_t events_due;
    uint64_t events_bytes; /* length of the last window of events */
    uint64_t coded_end;    /* end of the blocks in the window */
    int uncoded;           /* a part could not be coded: further windows have none */
    struct ensio_nested_time nested_time;
};

/* The caller of the following functions holds the lock. */

/* Takes a cursor for a new thread, or returns NULL without memory; it is released when the thread ends. */
struct ensio_cursor *ensio_cursor_take(void);
void ensio_cursor_release(struct ensio_cursor *cursor);

/* The cursor of a thread, by the kernel's id of it, or NULL: it has made no recorded call. */
struct ensio_cursor *ensio_cursor_of(uint32_t tid);

/* The number of cursors that are in use. */
uint32_t ensio_cursor_count(void);

/* Adds the events of the thread's window up to slot `end` that are not added yet. Skips slots that were claimed but not
 * filled, or stops there if they may still be filled. Returns whether all events are added. */
int ensio_drain(struct ensio_cursor *cursor, uint32_t end, int may_be_filled);

/* The number of slots of a window. */
static inline uint32_t ensio_window_slots(const struct ensio_window *window)
{
    return window->kind == ENSIO_WINDOW_CODED
               ? ENSIO_PART_EVENTS
               : (uint32_t)((window->bytes - ENSIO_WINDOW_HEADER_BYTES) / sizeof(struct ensio_event));
}

static inline struct ensio_event *ensio_window_events(struct ensio_window *window)
{
    return (struct ensio_event *)(void *)((char *)window + ENSIO_WINDOW_HEADER_BYTES);
}

/* Adds the events in the windows of all threads but the caller's, which drains its window itself. */
void ensio_drain_others(const struct ensio_cursor *own);

/* Forgets the threads of a parent process. */
void ensio_drain_forget(void);

/* Whether events of this process, or of one that it was forked from, are in the summary only (ENSIO_SUMMED_ONLY). */
extern int ensio_has_summed_only;

#endif
