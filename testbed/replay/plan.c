#define _GNU_SOURCE
#include "plan.h"

#include "fail.h"
#include "unrecorded.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERSION "ensio-plan 2 "
#define MOST_HEADER_BYTES (1L << 30)
#define MOST_DIGITS 20
#define ROWS_TAG 1

static const char *plan_path;

static __attribute__((noreturn)) void refuse(void)
{
    fail(EXIT_USAGE, "%s is not a plan of this version of ensio: make it again with ensio replay", plan_path);
}

static void *allocate(size_t count, size_t bytes)
{
    void *memory = calloc(count ? count : 1, bytes);
    if (!memory)
        fail(EXIT_FAILURE, "no memory for a plan with %zu entries of %zu bytes", count, bytes);
    return memory;
}

/* Splits off the next line of the text; `at` advances through it. */
static char *next_line(char **at)
{
    char *line = *at;
    char *end = strchr(line, '\n');
    if (!end || end == line)
        refuse();
    *end = '\0';
    *at = end + 1;
    return line;
}

/* The whole number after the key of a line. */
static long next_count(char **at, const char *key)
{
    char *line = next_line(at);
    size_t length = strlen(key);
    char *end = line;
    long count = -1;
    errno = 0;
    if (strncmp(line, key, length) == 0 && line[length] == ' ')
        count = strtol(line + length + 1, &end, 10);
    if (count < 0 || *end || errno)
        refuse();
    return count;
}

static long next_count_within(char **at, const char *key, long least, long most)
{
    long count = next_count(at, key);
    if (count < least || count > most)
        refuse();
    return count;
}

static char **next_lines(char **at, long count)
{
    char **lines = allocate((size_t)count, sizeof *lines);
    for (long i = 0; i < count; i++)
        lines[i] = next_line(at);
    return lines;
}

static void next_hints(char **at, struct plan *plan)
{
    plan->hints = allocate((size_t)plan->hint_count, sizeof *plan->hints);
    for (long i = 0; i < plan->hint_count; i++) {
        plan->hints[i].key = next_line(at);
        plan->hints[i].value = strchr(plan->hints[i].key, ' ');
        if (!plan->hints[i].value)
            refuse();
        *plan->hints[i].value++ = '\0';
    }
}

static void next_steps(char **at, struct plan *plan)
{
    plan->steps = allocate((size_t)plan->step_count, sizeof *plan->steps);
    for (long i = 0; i < plan->step_count; i++) {
        char *phase = next_line(at);
        char *repetition = strrchr(phase, ' ');
        char *end = NULL;
        if (!repetition || repetition - phase >= PLAN_NAME_BYTES)
            refuse();
        memcpy(plan->steps[i].phase, phase, (size_t)(repetition - phase));
        plan->steps[i].repetition = strtol(repetition, &end, 10);
        if (*end)
            refuse();
    }
}

/* The plan points into the text. Returns the number of operations of all tasks. */
static long parse_text(char *text, struct plan *plan)
{
    char *seed = next_line(&text);
    char *end = seed;
    errno = 0;
    if (strncmp(seed, "seed ", strlen("seed ")) == 0)
        plan->seed = strtoull(seed + strlen("seed "), &end, 10);
    if (end == seed || *end || errno)
        refuse();
    plan->tasks = (int)next_count_within(&text, "tasks", 1, INT_MAX);
    plan->tasks_per_node = next_count_within(&text, "tasks_per_node", 1, LONG_MAX);
    plan->call_count = next_count_within(&text, "calls", 0, MOST_HEADER_BYTES);
    plan->calls = next_lines(&text, plan->call_count);
    plan->file_count = next_count_within(&text, "files", 0, MOST_HEADER_BYTES);
    plan->files = next_lines(&text, plan->file_count);
    plan->hint_count = next_count_within(&text, "hints", 0, MOST_HEADER_BYTES);
    next_hints(&text, plan);
    plan->step_count = next_count_within(&text, "steps", 0, MOST_HEADER_BYTES);
    next_steps(&text, plan);
    return next_count(&text, "operations");
}

static void check_operations(const struct plan *plan)
{
    int64_t step = 0;
    for (long i = 0; i < plan->operation_count; i++) {
        const struct plan_operation *operation = &plan->operations[i];
        const int is_further = operation->call == PLAN_FURTHER_BOX;
        if (is_further && (i == 0 || operation->step != step || operation->file != operation[-1].file ||
                           operation->offset < operation[-1].offset || operation->bytes <= 0))
            refuse();
        if (operation->step < step || operation->step >= plan->step_count || (operation->call < 0 && !is_further) ||
            operation->call >= plan->call_count || operation->file < -1 || operation->file >= plan->file_count ||
            operation->offset < 0 || operation->pieces < 0 || operation->planes < 0)
            refuse();
        if (!plan_is_one_piece(operation) && (operation->pieces > INT64_MAX / operation->planes ||
                                              operation->bytes % (operation->pieces * operation->planes)))
            refuse();
        step = operation->step;
    }
}

/* Sends every rank its operations. Only rank 0 reads them, and it holds those of one task at a time. */
static void hand_out_operations(int descriptor, long total, struct plan *plan)
{
    int64_t *counts = allocate((size_t)plan->tasks, sizeof *counts);
    if (plan->rank == 0 && unrecorded_read(descriptor, counts, (size_t)plan->tasks * sizeof *counts))
        refuse();
    PMPI_Bcast(counts, plan->tasks, MPI_INT64_T, 0, MPI_COMM_WORLD);
    int64_t left = total;
    for (int task = 0; task < plan->tasks; task++) {
        if (counts[task] < 0 || counts[task] > left || counts[task] > INT_MAX)
            refuse();
        left -= counts[task];
    }

    MPI_Datatype operation;
    PMPI_Type_contiguous(sizeof(struct plan_operation) / sizeof(int64_t), MPI_INT64_T, &operation);
    PMPI_Type_commit(&operation);
    plan->operation_count = (long)counts[plan->rank];
    plan->operations = allocate((size_t)plan->operation_count + 1, sizeof *plan->operations);
    if (plan->rank > 0)
        PMPI_Recv(plan->operations, (int)plan->operation_count, operation, 0, ROWS_TAG, MPI_COMM_WORLD,
                  MPI_STATUS_IGNORE);
    for (int task = 0; plan->rank == 0 && task < plan->tasks; task++) {
        struct plan_operation *rows = task ? allocate((size_t)counts[task], sizeof *rows) : plan->operations;
        if (unrecorded_read(descriptor, rows, (size_t)counts[task] * sizeof *rows))
            refuse();
        if (task) {
            PMPI_Send(rows, (int)counts[task], operation, task, ROWS_TAG, MPI_COMM_WORLD);
            free(rows);
        }
    }
    PMPI_Type_free(&operation);
    free(counts);
    check_operations(plan);
}

/* Reads the first line, and returns the length of the text after it. */
static long read_first_line(int descriptor)
{
    char line[sizeof VERSION + MOST_DIGITS] = {0};
    size_t length = 0;
    do {
        if (length == sizeof line - 1 || unrecorded_read(descriptor, line + length, 1))
            refuse();
    } while (line[length++] != '\n');
    char *end = line;
    long bytes = 0;
    if (strncmp(line, VERSION, strlen(VERSION)) == 0)
        bytes = strtol(line + strlen(VERSION), &end, 10);
    if (bytes < 1 || bytes > MOST_HEADER_BYTES || *end != '\n')
        refuse();
    return bytes;
}

void plan_distribute(const char *path, struct plan *plan)
{
    int tasks;
    int descriptor = -1;
    long length = 0;
    plan_path = path;
    PMPI_Comm_rank(MPI_COMM_WORLD, &plan->rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &tasks);
    if (plan->rank == 0) {
        descriptor = unrecorded_open(path);
        if (descriptor < 0)
            fail(EXIT_USAGE, "%s cannot be read: %s", path, strerror(errno));
        length = read_first_line(descriptor);
    }
    PMPI_Bcast(&length, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    char *text = allocate((size_t)length + 1, 1);
    if (plan->rank == 0 && unrecorded_read(descriptor, text, (size_t)length))
        refuse();
    PMPI_Bcast(text, (int)length, MPI_CHAR, 0, MPI_COMM_WORLD);

    long operations = parse_text(text, plan);
    if (plan->tasks != tasks)
        fail(EXIT_USAGE,
             "the plan is for %d tasks, but %d were started: start it with the mpiexec of the MPI that "
             "ensio-replay was built with",
             plan->tasks, tasks);
    hand_out_operations(descriptor, operations, plan);
    if (descriptor >= 0)
        unrecorded_close(descriptor);
}
