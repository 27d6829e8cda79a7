/* plan.h: what every task of a replay has to do, as ensembles/patterns/plan.py expanded it from a pattern.
 *
 * A plan file is text, then numbers. The first line, "ensio-plan 1 BYTES", gives the length of the text after it:
 *
 *     seed 123456                  what the content of the files is made from
 *     tasks 8
 *     calls 2                      the names of the calls, a line each
 *     open
 *     write
 *     files 1                      absolute paths, a line each
 *     /scratch/ior.dat
 *     steps 2                      phase and repetition, a line each
 *     open 0
 *     write 0
 *     operations 16
 *
 * After the text: the number of operations of each task, then the operations themselves, those of task 0 first, all as
 * int64_t in the byte order of the machine.
 */
#ifndef ENSIO_REPLAY_PLAN_H
#define ENSIO_REPLAY_PLAN_H

#include <stdint.h>

#define PLAN_NAME_BYTES 64

/* What a task does between two barriers. */
struct plan_step {
    char phase[PLAN_NAME_BYTES];
    long repetition;
};

/* One call. Indices count from 0 in the plan's lists. */
struct plan_operation {
    int64_t step;
    int64_t call;
    int64_t file;
    int64_t offset; /* where in the file the data begins, also of calls that do not say so themselves */
    int64_t bytes;  /* 0 of calls that move no data */
};

struct plan {
    uint64_t seed;
    int tasks;
    long call_count;
    char **calls;
    long file_count;
    char **files;
    long step_count;
    struct plan_step *steps;
    long operation_count; /* of this task */
    struct plan_operation *operations;
};

/* Reads the plan on rank 0 through stdio, so that no traced call is spent on it, and gives every rank its part.
 * Collective over MPI_COMM_WORLD. Ends the program if the plan cannot be used. */
void plan_distribute(const char *path, struct plan *plan);

#endif
