/* call_cost.c: the cost that recording adds to a call of 8 bytes, for one kind of call, with one thread and with two.
 *
 * Three loops (loops.h) run in turn, so that changes of the machine's speed affect all of them. Times are thread CPU
 * times; medians over rounds; ratio and added costs come from pairs of loops in the same round. A round is longer than
 * a window of the recorder, so that each includes first touches and changes of windows.
 *
 * The two threads are bound to one core each. Each measures the added cost while the other is idle, and while it does
 * the same.
 *
 * Prints one line for call_cost.py: numbers of nanoseconds, and ratios. */
#define _GNU_SOURCE
#include "loops.h"
#include "measure.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

enum { ROUND_CALLS = 100000, MOST_ROUNDS = 1000 };

static const struct loops *loops;
static const char *folder;
static int rounds;

static double per_call_ns(void (*loop)(int))
{
    loops_rewind(ROUND_CALLS);
    double start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    loop(ROUND_CALLS);
    return (clock_ns(CLOCK_THREAD_CPUTIME_ID) - start) / ROUND_CALLS;
}

static void one_thread(void)
{
    static double untraced[MOST_ROUNDS], floor_added[MOST_ROUNDS], added[MOST_ROUNDS], ratio[MOST_ROUNDS];
    loops_begin(folder);
    per_call_ns(loops->untraced), per_call_ns(loops->at_floor), per_call_ns(loops->recorded);
    for (int i = 0; i < rounds; i++) {
        untraced[i] = per_call_ns(loops->untraced);
        floor_added[i] = per_call_ns(loops->at_floor) - untraced[i];
        added[i] = per_call_ns(loops->recorded) - per_call_ns(loops->untraced);
        ratio[i] = added[i] / floor_added[i];
    }
    loops_end();
    printf("untraced_ns %.1f floor_ns %.1f added_ns %.1f ratio %.3f", median(untraced, rounds),
           median(floor_added, rounds), median(added, rounds), median(ratio, rounds));
}

static pthread_barrier_t both;

struct worker {
    int number;
    double floor_added[MOST_ROUNDS], alone[MOST_ROUNDS], together[MOST_ROUNDS], ratio[MOST_ROUNDS];
};

static double added_ns(void (*loop)(int))
{
    double untraced = per_call_ns(loops->untraced);
    return per_call_ns(loop) - untraced;
}

static void *work(void *state)
{
    struct worker *worker = state;
    cpu_set_t core;
    CPU_ZERO(&core);
    CPU_SET(worker->number, &core);
    if (sched_setaffinity(0, sizeof core, &core) != 0)
        fail("sched_setaffinity");
    loops_begin(folder);
    per_call_ns(loops->untraced), per_call_ns(loops->recorded);
    for (int i = 0; i < rounds; i++) {
        for (int turn = 0; turn < 2; turn++) {
            pthread_barrier_wait(&both);
            if (turn != worker->number)
                continue;
            worker->floor_added[i] = added_ns(loops->at_floor);
            worker->alone[i] = added_ns(loops->recorded);
        }
        pthread_barrier_wait(&both);
        double untraced = per_call_ns(loops->untraced);
        pthread_barrier_wait(&both);
        worker->together[i] = per_call_ns(loops->recorded) - untraced;
        worker->ratio[i] = worker->together[i] / worker->alone[i];
    }
    loops_end();
    return NULL;
}

static void two_threads(void)
{
    static struct worker workers[2] = {{.number = 0}, {.number = 1}};
    pthread_t threads[2];
    pthread_barrier_init(&both, NULL, 2);
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, work, &workers[i]) != 0)
            fail("pthread_create");
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    double worse = 0, floor_added = 0, alone = 0, together = 0;
    for (int i = 0; i < 2; i++) {
        double own = median(workers[i].ratio, rounds);
        if (own > worse) {
            worse = own;
            floor_added = median(workers[i].floor_added, rounds);
            alone = median(workers[i].alone, rounds);
            together = median(workers[i].together, rounds);
        }
    }
    printf(" threads_floor_ns %.1f alone_ns %.1f together_ns %.1f together_ratio %.3f", floor_added, alone, together,
           worse);
}

int main(int count, char **arguments)
{
    loops = count > 1 ? loops_named(arguments[1]) : NULL;
    rounds = count > 2 ? atoi(arguments[2]) : 30;
    folder = getenv("ENSIO_DIR");
    if (!loops || rounds < 1 || rounds > MOST_ROUNDS || !folder) {
        fprintf(stderr, "usage: ENSIO_DIR=FOLDER ENSIO_EXCLUDE= %s CALL [rounds, 1 to %d]\n", arguments[0],
                MOST_ROUNDS);
        for (int i = 0; i < loops_count; i++)
            fprintf(stderr, "  %s: on %s\n", all_loops[i].name, all_loops[i].target);
        return 2;
    }
    one_thread();
    if (sysconf(_SC_NPROCESSORS_ONLN) > 1)
        two_threads();
    printf("\n");
    return 0;
}
