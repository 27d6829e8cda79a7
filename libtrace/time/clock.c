#include "clock.h"

#include <core/rawsys.h>

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

uint32_t ensio_clock_kind = ENSIO_CLOCK_MONOTONIC;

#if defined(__x86_64__)

static int processor_has_invariant_counter(void)
{
    unsigned eax, ebx, ecx, edx;
    return __get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) && (edx & (1U << 8));
}

/* The kernel compares the counters of all sockets with each other, and stops using them when they drift apart. */
static int kernel_trusts_counter(void)
{
    char source[8] = "";
    int fd = ensio_raw_open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY, 0);
    if (fd < 0)
        return 0;
    long got = ENSIO_RAW(SYS_read, fd, source, sizeof source);
    ensio_raw_close(fd);
    return got >= 4 && memcmp(source, "tsc\n", 4) == 0;
}

void ensio_clock_choose(void)
{
    ensio_clock_kind =
        processor_has_invariant_counter() && kernel_trusts_counter() ? ENSIO_CLOCK_TSC : ENSIO_CLOCK_MONOTONIC;
}

#else

void ensio_clock_choose(void)
{
}

#endif

/* Takes several readings and keeps the one with the shortest time between its two tick counts, which is the least
 * disturbed. */
struct ensio_clock_reading ensio_clock_read(void)
{
    struct ensio_clock_reading best = {0, 0, 0};
    uint64_t shortest = UINT64_MAX;
    for (int attempt = 0; attempt < 5; attempt++) {
        uint64_t before = ensio_ticks();
        uint64_t monotonic_ns = ensio_clock_ns(CLOCK_MONOTONIC);
        uint64_t after = ensio_ticks();
        uint64_t realtime_ns = ensio_clock_ns(CLOCK_REALTIME);
        uint64_t monotonic_again_ns = ensio_clock_ns(CLOCK_MONOTONIC);
        uint64_t took = (after - before) + (monotonic_again_ns - monotonic_ns);
        if (took >= shortest)
            continue;
        shortest = took;
        best.ticks = before + (after - before) / 2;
        best.monotonic_ns = monotonic_ns;
        best.realtime_ns = realtime_ns - (monotonic_again_ns - monotonic_ns) / 2;
    }
    return best;
}

/* The readings are at different distances: at equal ones, their distance would look like the step. */
uint64_t ensio_clock_step(void)
{
    if (ensio_clock_kind != ENSIO_CLOCK_TSC)
        return 0; /* nanoseconds have been rounded from a counter that is not known */
    uint64_t step = 0, before = ensio_ticks();
    for (int reading = 0; reading < 64; reading++) {
        for (volatile int waited = 0; waited < reading % 7; waited++) {
        }
        uint64_t now = ensio_ticks(), rest = now - before;
        before = now;
        while (rest) {
            uint64_t smaller = step % rest;
            step = rest;
            rest = smaller;
        }
    }
    return step;
}
