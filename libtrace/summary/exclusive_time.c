#include "exclusive_time.h"

#include <time/tick_rate.h>

#define LOOKED_AT 256 /* events of other calls in sequence before one, after which the search for calls inside ends */

static uint64_t overlap(uint64_t from, uint64_t to, const struct ensio_event *event)
{
    const uint64_t end = event->start + event->duration;
    from = from > event->start ? from : event->start;
    to = to < end ? to : end;
    return to > from ? to - from : 0;
}

/* The sum of the durations of a depth, among the events before one, that began after it did. A request of non-blocking
 * I/O began long before the events around it, so an earlier start does not end the search. */
static uint64_t began_after(const struct ensio_event *event, const struct ensio_event *first, uint32_t level,
                            uint64_t rate)
{
    uint64_t ns = 0;
    uint32_t others = 0;
    for (const struct ensio_event *at = event; at-- > first && others < LOOKED_AT;) {
        if (at->start < event->start) {
            others++;
            continue;
        }
        others = 0;
        if (at->depth == level)
            ns += ensio_ticks_to_ns(overlap(at->start, at->start + at->duration, event), rate);
    }
    return ns;
}

/* Sums the pending calls of greater depth. A call that began before this one belongs to an enclosing call that was not
 * recorded. Calls of one depth may overlap, if one of them was posted by another thread; the time that they cover is
 * then not longer than from the first to the last of them. */
uint64_t ensio_nested_time_take(struct ensio_nested_time *nested, const struct ensio_event *event,
                                const struct ensio_event *first, uint64_t rate)
{
    const uint64_t duration_ns = ensio_ticks_to_ns(event->duration, rate);
    uint64_t ns = 0;
    for (uint32_t level = event->depth + 1U; level < ENSIO_LEVELS; level++) {
        struct ensio_nested_level *waiting = &nested->waiting[level];
        if (!(nested->depths & 1U << level))
            continue;
        uint64_t inside = 0;
        if (waiting->first_start >= event->start)
            inside = waiting->ns;
        else if (waiting->last_start >= event->start)
            inside = began_after(event, first, level, rate);
        const uint64_t most = ensio_ticks_to_ns(overlap(waiting->first_start, waiting->last_end, event), rate);
        ns += inside < most ? inside : most;
        *waiting = (struct ensio_nested_level){0, 0, 0, 0};
        nested->depths &= ~(1U << level);
    }
    return ns < duration_ns ? ns : duration_ns;
}

void ensio_nested_time_add(struct ensio_nested_time *nested, const struct ensio_event *event, uint64_t ns)
{
    uint32_t level = event->depth < ENSIO_LEVELS ? event->depth : ENSIO_LEVELS - 1;
    struct ensio_nested_level *waiting = &nested->waiting[level];
    const uint64_t end = event->start + event->duration;
    const int is_first = !(nested->depths & 1U << level);
    nested->depths |= 1U << level;
    if (is_first || event->start < waiting->first_start)
        waiting->first_start = event->start;
    if (is_first || event->start > waiting->last_start)
        waiting->last_start = event->start;
    if (end > waiting->last_end)
        waiting->last_end = end;
    waiting->ns += ns;
}
