/* exclusive_time.h: how much of a call's time was spent in recorded calls inside it. */
#ifndef ENSIO_SUMMARY_EXCLUSIVE_TIME_H
#define ENSIO_SUMMARY_EXCLUSIVE_TIME_H

#include <ensio/event.h>
#include <stdint.h>

#define ENSIO_LEVELS 16 /* depths that are told apart */

/* Calls of one depth whose outer call has not completed yet. */
struct ensio_nested_level {
    uint64_t ns; /* sum of their durations */
    uint64_t first_start;
    uint64_t last_start;
};

/* Of one thread. */
struct ensio_nested_time {
    uint32_t depths; /* bit n: calls of depth n wait */
    struct ensio_nested_level waiting[ENSIO_LEVELS];
};

/* What a call spent in recorded calls inside, which now wait no more. `first`: of the events before it in its window.
 */
uint64_t ensio_nested_time_take(struct ensio_nested_time *nested, const struct ensio_event *event,
                                const struct ensio_event *first, uint64_t rate);

/* A call that was inside another one waits for it. */
void ensio_nested_time_add(struct ensio_nested_time *nested, const struct ensio_event *event, uint64_t ns);

#endif
