#define _GNU_SOURCE
#include "summary.h"

#include "fail.h"
#include "unrecorded.h"

#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MIB 1048576.0

/* Results of one step: times are maxima over the tasks, counts are sums. */
enum { CALLS_S, BARRIER_S, TIMES };
enum { CALLS, BYTES, COUNTS };

static void print_step(FILE *table, const struct plan_step *step, int tasks, const double *times, const int64_t *counts)
{
    fprintf(table, "%-12s %10ld %7d %9" PRId64 " %16" PRId64 " %14.9f %14.9f ", step->phase, step->repetition, tasks,
            counts[CALLS], counts[BYTES], times[CALLS_S], times[BARRIER_S]);
    if (counts[BYTES] > 0)
        fprintf(table, "%12.1f\n", (double)counts[BYTES] / times[BARRIER_S] / MIB);
    else
        fprintf(table, "%12s\n", "-");
}

/* The table is composed in memory, because streams are recorded. */
static void print_table(const struct plan *plan, double (*times)[TIMES], int64_t (*counts)[COUNTS])
{
    char *text;
    size_t length;
    FILE *table = open_memstream(&text, &length);
    if (!table)
        fail(EXIT_FAILURE, "no memory for the table of what was done");
    fprintf(table, "%-12s %10s %7s %9s %16s %14s %14s %12s\n", "phase", "repetition", "tasks", "calls", "bytes",
            "slowest_task_s", "phase_s", "MiB_per_s");
    for (long step = 0; step < plan->step_count; step++)
        print_step(table, &plan->steps[step], plan->tasks, times[step], counts[step]);
    fclose(table);
    unrecorded_write(STDOUT_FILENO, text, length);
    free(text);
}

void summary_print(const struct plan *plan, const struct step_result *results)
{
    size_t steps = plan->step_count ? (size_t)plan->step_count : 1;
    double(*times)[TIMES] = calloc(steps, sizeof *times);
    int64_t(*counts)[COUNTS] = calloc(steps, sizeof *counts);
    if (!times || !counts)
        fail(EXIT_FAILURE, "no memory for the results of %ld steps", plan->step_count);
    for (long step = 0; step < plan->step_count; step++) {
        times[step][CALLS_S] = results[step].calls_s;
        times[step][BARRIER_S] = results[step].barrier_s;
        counts[step][CALLS] = results[step].calls;
        counts[step][BYTES] = results[step].bytes;
    }
    int is_root = plan->rank == 0;
    PMPI_Reduce(is_root ? MPI_IN_PLACE : times, times, (int)(plan->step_count * TIMES), MPI_DOUBLE, MPI_MAX, 0,
                MPI_COMM_WORLD);
    PMPI_Reduce(is_root ? MPI_IN_PLACE : counts, counts, (int)(plan->step_count * COUNTS), MPI_INT64_T, MPI_SUM, 0,
                MPI_COMM_WORLD);
    if (is_root)
        print_table(plan, times, counts);
    free(times);
    free(counts);
}
