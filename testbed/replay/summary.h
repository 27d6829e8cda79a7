/* summary.h: measurements by the replay itself, independent of any trace. */
#ifndef ENSIO_REPLAY_SUMMARY_H
#define ENSIO_REPLAY_SUMMARY_H

#include "plan.h"

/* One task's results of a step. */
struct step_result {
    double calls_s;   /* in the step's calls, by MPI_Wtime around each */
    double barrier_s; /* from the barrier before the calls to the one after them */
    int64_t calls;
    int64_t bytes;
};

/* Reduces the results of all tasks; `results` has one entry for each step of the plan. Rank 0 prints a table: calls and
 * bytes of all tasks, the time in calls of the slowest task, the time from barrier to barrier, and the rate that
 * follows from it. Collective over MPI_COMM_WORLD. */
void summary_print(const struct plan *plan, const struct step_result *results);

#endif
