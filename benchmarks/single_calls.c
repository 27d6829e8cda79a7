/* single_calls.c: the durations of the slowest single calls, untraced and recorded, which an average hides (a new
 * window, a renewed clock reading, first touches). Wall time of each call by the time-stamp counter, in alternating
 * rounds.
 *
 * Prints one line for call_cost.py: quantiles in nanoseconds. */
#include "loops.h"
#include "measure.h"

#include <string.h>

enum { ROUND_CALLS = 10000, MOST_ROUNDS = 1000 };

static double durations[2][ROUND_CALLS * MOST_ROUNDS];
static const double quantiles[] = {0.5, 0.99, 0.999, 1};

/* One call at a time through a function pointer, the same for both. */
static void time_each(void (*loop)(int), double *to)
{
    loops_rewind(ROUND_CALLS);
    for (int i = 0; i < ROUND_CALLS; i++) {
        uint64_t start = ticks();
        loop(1);
        to[i] = (double)(ticks() - start);
    }
}

int main(int count, char **arguments)
{
    const struct loops *loops = count > 1 ? loops_named(arguments[1]) : NULL;
    int rounds = count > 2 ? atoi(arguments[2]) : 100;
    const char *folder = getenv("ENSIO_DIR");
    if (!loops || rounds < 1 || rounds > MOST_ROUNDS || !folder) {
        fprintf(stderr, "usage: ENSIO_DIR=FOLDER ENSIO_EXCLUDE= %s CALL [rounds, 1 to %d]\n", arguments[0],
                MOST_ROUNDS);
        return 2;
    }
    loops_begin(folder);
    memset(durations, 0, sizeof durations); /* touched before the measurement */
    time_each(loops->untraced, durations[0]), time_each(loops->recorded, durations[1]);
    uint64_t first_tick = ticks();
    double first_ns = clock_ns(CLOCK_MONOTONIC);
    for (int i = 0; i < rounds; i++) {
        time_each(loops->untraced, durations[0] + (size_t)i * ROUND_CALLS);
        time_each(loops->recorded, durations[1] + (size_t)i * ROUND_CALLS);
    }
    double tick_ns = (clock_ns(CLOCK_MONOTONIC) - first_ns) / (double)(ticks() - first_tick);
    loops_end();
    int calls = rounds * ROUND_CALLS;
    for (int kind = 0; kind < 2; kind++) {
        qsort(durations[kind], (size_t)calls, sizeof **durations, ascending);
        for (size_t i = 0; i < sizeof quantiles / sizeof *quantiles; i++)
            printf("%s_%g %.0f ", kind ? "recorded" : "untraced", quantiles[i] * 100,
                   durations[kind][(int)(quantiles[i] * (calls - 1))] * tick_ns);
    }
    printf("calls %d\n", calls);
    return 0;
}
