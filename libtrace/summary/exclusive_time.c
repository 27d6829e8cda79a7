#include "exclusive_time.h"

#include <time/tick_rate.h>

/* The sum of the durations of a depth, among the events before one, that began after it did. Events are sorted by
 * start. */
static uint64_t began_after(const struct ensio_event *event, const struct ensio_event *first, uint32_t level,
                            uint64_t rate)
{
    uint64_t ns = 0;
    for (const struct ensio_event *at = event; at-- > first && at->start >= event->start;)
        if (at->depth == level)
            ns += ensio_ticks_to_ns(at->duration, rate);
    return ns;
}

/* Sums the pending calls of greater depth. A call that began before this one belongs to an enclosing call that was not
 * recorded. */
uint64_t ensio_nested_time_take(struct ensio_nested_time *nested, const struct ensio_event *event,
                                const struct ensio_event *first, uint64_t rate)
{
    uint64_t ns = 0;
    for (uint32_t level = event->depth + 1U; level < ENSIO_LEVELS; level++) {
        struct ensio_nested_level *waiting = &nested->waiting[level];
        if (!(nested->depths & 1U << level))
            continue;
        if (waiting->first_start >= event->start)
            ns += waiting->ns;
        else if (waiting->last_start >= event->start)
            ns += began_after(event, first, level, rate);
        *waiting = (struct ensio_nested_level){0, 0, 0};
        nested->depths &= ~(1U << level);
    }
    return ns;
}

void ensio_nested_time_add(struct ensio_nested_time *nested, const struct ensio_event *event, uint64_t ns)
{
    uint32_t level = event->depth < ENSIO_LEVELS ? event->depth : ENSIO_LEVELS - 1;
    struct ensio_nested_level *waiting = &nested->waiting[level];
    if (!(nested->depths & 1U << level))
        waiting->first_start = event->start;
    nested->depths |= 1U << level;
    waiting->last_start = event->start;
    waiting->ns += ns;
}
