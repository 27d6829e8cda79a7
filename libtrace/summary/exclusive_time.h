/* exclusive_time.h: how much of a call's time was spent in recorded calls inside it. */
#ifndef ENSIO_SUMMARY_EXCLUSIVE_TIME_H
#define ENSIO_SUMMARY_EXCLUSIVE_TIME_H

#include <ensio/event.h>
#include <stdint.h>

#define ENSIO_LEVELS 16 /* depths that are told apart */

/* Calls of one depth whose outer call has not completed yet. */
struct ensio_waiting {
    uint64_t ns; /* sum of their durations */
    uint64_t first_start;
    uint64_t last_start;
};

/* Of one thread. */
struct ensio_nesting {
    uint32_t depths; /* bit n: calls of depth n wait */
    struct ensio_waiting waiting[ENSIO_LEVELS];
};

/* What a call spent in recorded calls inside, which now wait no more. `first`: of the events before it in its window. */
uint64_t ensio_inner_ns(struct ensio_nesting *nesting, const struct ensio_event *event, const struct ensio_event *first,
                        uint64_t rate);

/* A call that was inside another one waits for it. */
void ensio_wait_for_outer(struct ensio_nesting *nesting, const struct ensio_event *event, uint64_t ns);

#endif
