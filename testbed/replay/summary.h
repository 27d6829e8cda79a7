/* summary.h: what a replay measured of itself, apart from any trace of it. */
#ifndef ENSIO_REPLAY_SUMMARY_H
#define ENSIO_REPLAY_SUMMARY_H

#include "plan.h"

/* One task's share of a step. */
struct step_result {
    double calls_s;   /* in the step's calls, by MPI_Wtime around each */
    double barrier_s; /* from the barrier before the calls to the one after them */
    int64_t calls;
    int64_t bytes;
};

/* Brings the results of all tasks together, `results` having one entry for each step of the plan, and prints a table on
 * rank 0: calls and bytes of all tasks, the time in calls of the slowest task, and the time from barrier to barrier,
 * from which the rate follows. Collective over MPI_COMM_WORLD. */
void summary_print(const struct plan *plan, const struct step_result *results);

#endif
