#include "tick_rate.h"

#include "clock.h"

/* Two readings of the clocks are each accurate to about 30 ns. A call that has returned took no longer than the time
 * since the first reading. With a rate that is measured over at least half of that time, no duration is wrong by more
 * than about 0.1 us, and the error is less than the width of a bin once the readings are LEAST_NS apart. */
#define LEAST_NS 100000

static struct ensio_clock_reading first, last;

void ensio_tick_rate_begin(void)
{
    first = last = ensio_clock_read();
}

uint64_t ensio_tick_rate(void)
{
    if (ensio_clock_kind == ENSIO_CLOCK_MONOTONIC)
        return 1ULL << ENSIO_RATE_BITS;
    if (ensio_ticks() - first.ticks > 2 * (last.ticks - first.ticks))
        last = ensio_clock_read();
    while (last.monotonic_ns - first.monotonic_ns < LEAST_NS) /* at most once in a process, right after it begins */
        last = ensio_clock_read();
    uint64_t ticks = last.ticks - first.ticks;
    return (uint64_t)(((unsigned __int128)(last.monotonic_ns - first.monotonic_ns) << ENSIO_RATE_BITS) /
                      (ticks ? ticks : 1));
}
