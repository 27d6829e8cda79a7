/* plan.h: what every task of a replay has to do, as ensembles/workloads/patterns expanded it from a pattern.
 *
 * A plan file is text, then numbers. The first line, "ensio-plan 2 BYTES", gives the length of the text after it:
 *
 *     seed 123456                  what the content of the files is made from
 *     tasks 8
 *     tasks_per_node 4             of the machine that is meant; a replay runs where it is started
 *     calls 2                      the names of the calls, a line each: layer.call
 *     posix.open
 *     posix.write
 *     files 1                      absolute paths, a line each
 *     /scratch/ior.dat
 *     hints 1                      for MPI-IO, and as hdf5.KEY for HDF5: key and value, a line each
 *     romio_cb_write enable
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

#include "../plan_operation.h"

#include <stdint.h>

#define PLAN_NAME_BYTES 64

/* What a task does between two barriers. */
struct plan_step {
    char phase[PLAN_NAME_BYTES];
    long repetition;
};

struct plan_hint {
    char *key;
    char *value;
};

struct plan {
    uint64_t seed;
    int tasks;
    int rank;        /* of this task */
    int is_recorded; /* made from a recorded run (as_recorded.h) */
    long tasks_per_node;
    long call_count;
    char **calls;
    long file_count;
    char **files;
    long hint_count;
    struct plan_hint *hints;
    long step_count;
    struct plan_step *steps;
    long operation_count;              /* of this task: rows, of which a call has one for each of its boxes */
    struct plan_operation *operations; /* one more than operation_count, which is not a further box */
};

/* Reads the plan on rank 0 and gives every rank its part. Collective over MPI_COMM_WORLD. Ends the program if the plan
 * cannot be used. */
void plan_distribute(const char *path, struct plan *plan);

/* The operation after this one; this one's boxes are the rows before it. */
static inline const struct plan_operation *plan_next(const struct plan_operation *operation)
{
    do
        operation++;
    while (operation->call == PLAN_FURTHER_BOX);
    return operation;
}

/* Whether a box lies in one piece. */
static inline int plan_is_one_piece(const struct plan_operation *box)
{
    return box->pieces * box->planes <= 1;
}

/* Whether an operation's data lies in one piece. */
static inline int plan_is_contiguous(const struct plan_operation *operation)
{
    return plan_is_one_piece(operation) && operation[1].call != PLAN_FURTHER_BOX;
}

/* The bytes of all boxes of an operation. */
static inline int64_t plan_bytes(const struct plan_operation *operation)
{
    int64_t bytes = 0;
    for (const struct plan_operation *box = operation; box < plan_next(operation); box++)
        bytes += box->bytes;
    return bytes;
}

#endif
