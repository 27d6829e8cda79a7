/* plan.h: what every task of a simulation does: a plan of version 2, as ensembles/workloads/patterns writes it, mapped
 * from its file.
 *
 * The file is text, then numbers. The first line, "ensio-plan 2 BYTES", gives the length of the text after it, whose
 * sections are in this order: seed, tasks, tasks_per_node (a number each); calls, files, hints, steps (their number,
 * then a line for each); operations (their number). After the text: the number of operations of each task, then the
 * operations themselves, those of task 0 first, all as int64_t in the byte order of the machine.
 */
#ifndef ENSIO_SIMULATE_PLAN_H
#define ENSIO_SIMULATE_PLAN_H

#include "../plan_operation.h"

#include <stddef.h>
#include <stdint.h>

#define PLAN_NAME_BYTES 64

/* What a task does between two barriers. */
struct plan_step {
    char phase[PLAN_NAME_BYTES];
    long repetition;
};

struct plan {
    const char *path;
    uint64_t seed;
    int32_t tasks;
    int32_t tasks_per_node;
    int32_t nodes;
    int32_t call_count;
    int32_t file_count;
    int32_t hint_count;
    int32_t step_count;
    char **calls;
    char **files;
    char **hints; /* "key value" */
    struct plan_step *steps;
    int64_t operation_count; /* rows, of which a call has one for each of its boxes */
    const int64_t *counts;   /* rows of each task; possibly not aligned for int64_t */
    const struct plan_operation *operations;
    void *mapped;
    size_t mapped_bytes;
};

/* Reads a plan. Ends the program if it cannot be used. */
void plan_read(const char *path, struct plan *plan);

/* The number of a task's operations, of at most `left`. */
int64_t plan_count(const struct plan *plan, int32_t task, int64_t left);

/* One operation, with valid indices and positive lengths: its first box. */
struct plan_operation plan_operation(const struct plan *plan, int64_t number);

/* The boxes of an operation whose first row is `number`: rows before `end`. */
int64_t plan_boxes(const struct plan *plan, int64_t number, int64_t end);

/* One box, with positive lengths, of an operation whose first row is `number`. */
struct plan_operation plan_box(const struct plan *plan, int64_t number, int64_t box);

/* The value of a hint, or NULL. */
const char *plan_hint(const struct plan *plan, const char *key);

/* The same as a whole number of at least 1; `otherwise` if the plan lacks it. */
int64_t plan_hint_number(const struct plan *plan, const char *key, int64_t otherwise);

/* Whether a plan is short enough to stay in memory. */
int plan_is_kept(const struct plan *plan);

/* Releases the pages that were read of a plan that is not kept; they can be read again from the file. */
void plan_forget_pages(const struct plan *plan);

#endif
