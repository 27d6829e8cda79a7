/* exclusive_time.h: the part of a call's time that was spent in recorded calls inside it. */
#ifndef ENSIO_SUMMARY_EXCLUSIVE_TIME_H
#define ENSIO_SUMMARY_EXCLUSIVE_TIME_H

#include <ensio/event.h>
#include <stdint.h>

#define ENSIO_LEVELS 16 /* depths that are distinguished */

/* Calls of one depth whose enclosing call has not completed yet. They are in the order in which they were stored: a
 * request of non-blocking I/O is stored when it is complete, and its start lies further back. */
struct ensio_nested_level {
    uint64_t ns; /* sum of their durations */
    uint64_t first_start;
    uint64_t last_start;
    uint64_t last_end;
};

/* Pending calls of one thread. */
struct ensio_nested_time {
    uint32_t depths; /* bit n: calls of depth n are pending */
    struct ensio_nested_level waiting[ENSIO_LEVELS];
};

/* The time that a call spent in recorded calls inside it, which are no longer pending afterwards: never more than its
 * duration. `first`: the first event of its window. */
uint64_t ensio_nested_time_take(struct ensio_nested_time *nested, const struct ensio_event *event,
                                const struct ensio_event *first, uint64_t rate);

/* Adds a call to the pending ones of its depth. */
void ensio_nested_time_add(struct ensio_nested_time *nested, const struct ensio_event *event, uint64_t ns);

#endif
