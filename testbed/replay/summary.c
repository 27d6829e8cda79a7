#include "summary.h"

#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>

#define MIB 1048576.0

static void print_step(const struct plan_step *step, int tasks, const struct step_result *all)
{
    printf("%-12s %10ld %7d %9" PRId64 " %16" PRId64 " %14.9f %14.9f ", step->phase, step->repetition, tasks,
           all->calls, all->bytes, all->calls_s, all->barrier_s);
    if (all->bytes > 0)
        printf("%12.1f\n", (double)all->bytes / all->barrier_s / MIB);
    else
        printf("%12s\n", "-");
}

void summary_print(const struct plan *plan, const struct step_result *results)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        printf("%-12s %10s %7s %9s %16s %14s %14s %12s\n", "phase", "repetition", "tasks", "calls", "bytes",
               "slowest_task_s", "phase_s", "MiB_per_s");
    for (long step = 0; step < plan->step_count; step++) {
        const struct step_result *own = &results[step];
        struct step_result all = {0};
        MPI_Reduce(&own->calls_s, &all.calls_s, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        MPI_Reduce(&own->barrier_s, &all.barrier_s, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        MPI_Reduce(&own->calls, &all.calls, 1, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
        MPI_Reduce(&own->bytes, &all.bytes, 1, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
        if (rank == 0)
            print_step(&plan->steps[step], plan->tasks, &all);
    }
    fflush(stdout);
}
