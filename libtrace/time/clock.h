/* clock.h: ticks for time stamps, and readings that turn ticks into nanoseconds. */
#ifndef ENSIO_TIME_CLOCK_H
#define ENSIO_TIME_CLOCK_H

#include <ensio/event.h>
#include <stdint.h>
#include <time.h>

/* ENSIO_CLOCK_TSC or ENSIO_CLOCK_MONOTONIC; set before the first event. */
extern uint32_t ensio_clock_kind;

/* Chooses the clock: the time-stamp counter if processor and kernel both trust it. */
void ensio_clock_choose(void);

/* Reads all clocks at nearly the same moment. */
struct ensio_clock_reading ensio_clock_read(void);

/* Ticks by which the chosen counter advances at a time, as several readings show: those of some processors advance by
 * many. 0: unknown. */
uint64_t ensio_clock_step(void);

static inline uint64_t ensio_clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

static inline uint64_t ensio_ticks(void)
{
#if defined(__x86_64__)
    if (__builtin_expect(ensio_clock_kind == ENSIO_CLOCK_TSC, 1))
        return __builtin_ia32_rdtsc();
#endif
    return ensio_clock_ns(CLOCK_MONOTONIC);
}

#endif
