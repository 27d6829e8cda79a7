/* clock_line.h: the ticks of a process as nanoseconds since 1970, by a straight line, with the arithmetic of the
 * readers. */
#ifndef ENSIO_TIME_CLOCK_LINE_H
#define ENSIO_TIME_CLOCK_LINE_H

#include <stdint.h>

struct ensio_clock_line {
    uint64_t first_ticks;
    int64_t first_unix_ns; /* when the clock stood there */
    double ns_per_tick;
};

/* To the nearest integer, of two the even one: rint of the C library, which static programs would have to be linked
 * with. */
static inline int64_t ensio_nearest(double value)
{
    const double whole = 0x1p52; /* from there on all are integers */
    if (value >= whole || value <= -whole)
        return (int64_t)value;
    return (int64_t)(value >= 0 ? value + whole - whole : value - whole + whole);
}

static inline int64_t ensio_line_ns(const struct ensio_clock_line *line, uint64_t ticks)
{
    return ensio_nearest((double)(int64_t)(ticks - line->first_ticks) * line->ns_per_tick) + line->first_unix_ns;
}

#endif
