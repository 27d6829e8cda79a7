/* tick_rate.h: the length of a tick, as far as it is known. */
#ifndef ENSIO_TIME_TICK_RATE_H
#define ENSIO_TIME_TICK_RATE_H

#include <ensio/event.h>
#include <stdint.h>

/* Nanoseconds a tick, times 2^ENSIO_RATE_BITS. The caller holds the lock. */
uint64_t ensio_tick_rate(void);

/* Takes the first reading, from which the rate is measured. Forked children keep it, because the counter is the
 * machine's. */
void ensio_tick_rate_begin(void);

static inline uint64_t ensio_ticks_to_ns(uint64_t ticks, uint64_t rate)
{
    return (uint64_t)(((unsigned __int128)ticks * rate + (1ULL << (ENSIO_RATE_BITS - 1))) >> ENSIO_RATE_BITS);
}

#endif
