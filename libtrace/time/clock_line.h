/* clock_line.h: converts the ticks of a process to nanoseconds since 1970 by a linear function, with the same
 * arithmetic as the readers. */
#ifndef ENSIO_TIME_CLOCK_LINE_H
#define ENSIO_TIME_CLOCK_LINE_H

#include <stdint.h>

struct ensio_clock_line {
    uint64_t first_ticks;
    int64_t first_unix_ns; /* time at first_ticks */
    double ns_per_tick;
};

/* Rounds to the nearest integer, ties to even. Static programs would have to link the C library's rint. */
static inline int64_t ensio_nearest(double value)
{
    const double whole = 0x1p52; /* all larger values are integers */
    if (value >= whole || value <= -whole)
        return (int64_t)value;
    return (int64_t)(value >= 0 ? value + whole - whole : value - whole + whole);
}

static inline int64_t ensio_line_ns(const struct ensio_clock_line *line, uint64_t ticks)
{
    return ensio_nearest((double)(int64_t)(ticks - line->first_ticks) * line->ns_per_tick) + line->first_unix_ns;
}

#endif
