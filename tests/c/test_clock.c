/* Ticks, nanoseconds and times since 1970: rounding, the ends of the range, and readings of the machine's clocks. */
#include "recorder_world.h"

#include <core/lock.h>
#include <time/clock.h>
#include <time/clock_line.h>
#include <time/tick_rate.h>

#include <fenv.h>
#include <math.h>
#include <pthread.h>

#define ONE (1ULL << ENSIO_RATE_BITS) /* a tick is a nanosecond */

/* The nearest integer, by the arithmetic of 128 bits. */
static uint64_t exactly(uint64_t ticks, uint64_t rate)
{
    const unsigned __int128 product = (unsigned __int128)ticks * rate;
    return (uint64_t)(product >> 32) + ((uint64_t)product >> 31 & 1);
}

static void ticks_to_ns(void)
{
    const uint64_t rates[] = {1, ONE / 3, ONE / 2, ONE - 1, ONE, ONE + 1, 3 * ONE / 2, 2 * ONE, 10 * ONE};
    for (size_t r = 0; r < sizeof rates / sizeof *rates; r++) {
        uint64_t before = 0;
        CHECK(ensio_ticks_to_ns(0, rates[r]) == 0);
        for (uint32_t bits = 0; bits < 60; bits++)
            for (int beside = -1; beside <= 1; beside++) {
                const uint64_t ticks = (1ULL << bits) + (uint64_t)beside, ns = ensio_ticks_to_ns(ticks, rates[r]);
                CHECK(ns == exactly(ticks, rates[r]));
                CHECK(ns >= before || ticks < 4); /* a longer call is not shorter in nanoseconds */
                before = ns;
            }
    }
    for (uint32_t bits = 0; bits < 64; bits++)
        CHECK(ensio_ticks_to_ns(1ULL << bits, ONE) == 1ULL << bits);
    CHECK(ensio_ticks_to_ns(UINT64_MAX, ONE) == UINT64_MAX);
    CHECK(ensio_ticks_to_ns(1, ONE / 2) == 1 && ensio_ticks_to_ns(1, ONE / 2 - 1) == 0);
}

/* As the C library rounds: ties to even, large values unchanged, either sign. */
static void nearest(void)
{
    CHECK(fegetround() == FE_TONEAREST);
    for (int half = -2001; half <= 2001; half++)
        for (int beside = -1; beside <= 1; beside++) {
            const double value = half / 2.0 + beside * 0x1p-40;
            CHECK(ensio_nearest(value) == llrint(value));
        }
    for (int bits = 40; bits < 63; bits++)
        for (int halves = -6; halves <= 6; halves++) {
            const double value = ldexp(1, bits) + halves / 2.0;
            CHECK(ensio_nearest(value) == llrint(value) && ensio_nearest(-value) == llrint(-value));
        }
}

/* A line of ticks goes both ways from its first point, and through a wrap of the counter. */
static void line(void)
{
    const struct ensio_clock_line line = {1000, 1700000000000000000, 0.5};
    CHECK(ensio_line_ns(&line, 1000) == 1700000000000000000);
    CHECK(ensio_line_ns(&line, 1002) == 1700000000000000001 && ensio_line_ns(&line, 998) == 1699999999999999999);
    CHECK(ensio_line_ns(&line, 1001) == 1700000000000000000); /* a tie, to even */
    CHECK(ensio_line_ns(&line, 1003) == 1700000000000000002);
    const struct ensio_clock_line late = {UINT64_MAX - 9, 5, 1};
    CHECK(ensio_line_ns(&late, UINT64_MAX) == 14 && ensio_line_ns(&late, 0) == 15 && ensio_line_ns(&late, 10) == 25);
}

static uint64_t unix_ns(void)
{
    return ensio_clock_ns(CLOCK_REALTIME);
}

/* Readings lie between what the system's clocks show before and after, and follow each other. */
static void readings(void)
{
    ensio_clock_choose();
    CHECK(ensio_clock_kind == ENSIO_CLOCK_TSC || ensio_clock_kind == ENSIO_CLOCK_MONOTONIC);
    for (int kind = 0; kind < 2; kind++) {
        struct ensio_clock_reading before = ensio_clock_read();
        for (int i = 0; i < 1000; i++) {
            const uint64_t earlier = ensio_clock_ns(CLOCK_MONOTONIC), ticks = ensio_ticks();
            const struct ensio_clock_reading now = ensio_clock_read();
            CHECK(now.monotonic_ns >= earlier && now.monotonic_ns <= ensio_clock_ns(CLOCK_MONOTONIC));
            CHECK(now.ticks >= ticks && now.ticks <= ensio_ticks());
            CHECK(now.ticks >= before.ticks && now.monotonic_ns >= before.monotonic_ns);
            before = now;
        }
        CHECK(before.realtime_ns / 1000000000 <= unix_ns() / 1000000000 + 1);
        CHECK(before.realtime_ns > 1500000000ULL * 1000000000);
        if (ensio_clock_kind == ENSIO_CLOCK_MONOTONIC) {
            /* Ticks are nanoseconds of that clock, read a moment before or after it. */
            const int64_t apart = (int64_t)(before.monotonic_ns - before.ticks);
            CHECK(apart > -10000000000 && apart < 10000000000);
            CHECK(ensio_tick_rate() == ONE);
        }
        ensio_clock_kind = ENSIO_CLOCK_MONOTONIC;
    }
}

/* The measured rate turns the ticks of any span into its nanoseconds, to 0.1 % and the accuracy of the readings. */
static void rate(void)
{
    ensio_clock_choose();
    ensio_tick_rate_begin();
    for (int i = 0; i < 20; i++) {
        const uint64_t rate = ensio_tick_rate();
        const struct ensio_clock_reading first = ensio_clock_read();
        while (ensio_clock_ns(CLOCK_MONOTONIC) - first.monotonic_ns < 1000000)
            ;
        const struct ensio_clock_reading last = ensio_clock_read();
        const double measured = (double)ensio_ticks_to_ns(last.ticks - first.ticks, rate);
        const double span = (double)(last.monotonic_ns - first.monotonic_ns);
        /* The first rate is measured over 0.1 ms, with readings that may be off where the machine is busy. */
        CHECK(fabs(measured - span) <= span * (i ? 0.05 : 0.2));
    }
}

static void *ticks_of_thread(void *before)
{
    *(uint64_t *)before = ensio_ticks();
    return NULL;
}

/* A tick that another thread read before is not later, also on another processor. */
static void threads(void)
{
    pthread_t thread;
    ensio_clock_choose();
    for (int i = 0; i < 200; i++) {
        const uint64_t before = ensio_ticks();
        uint64_t there;
        CHECK(pthread_create(&thread, NULL, ticks_of_thread, &there) == 0 && pthread_join(thread, NULL) == 0);
        CHECK(there >= before && ensio_ticks() >= there);
    }
}

int main(void)
{
    CASE(ticks_to_ns);
    CASE(nearest);
    CASE(line);
    CASE(readings);
    CASE(rate);
    CASE(threads);
    return 0;
}
