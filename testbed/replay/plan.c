#define _GNU_SOURCE
#include "plan.h"

#include "fail.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_HEADER_BYTES (1L << 30)

static const char *plan_path;

static void refuse(void)
{
    fail(EXIT_USAGE, "%s is not a plan of this version of ensio: make it anew with ensio replay", plan_path);
}

static void *allocate(size_t count, size_t bytes)
{
    void *memory = calloc(count ? count : 1, bytes);
    if (!memory)
        fail(EXIT_FAILURE, "no memory for a plan with %zu entries of %zu bytes", count, bytes);
    return memory;
}

static void read_exactly(FILE *file, void *memory, size_t bytes, size_t count)
{
    if (fread(memory, bytes, count, file) != count)
        refuse();
}

static char *read_line(FILE *text)
{
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length = getline(&line, &capacity, text);
    if (length < 1 || line[length - 1] != '\n')
        refuse();
    line[length - 1] = '\0';
    return line;
}

static long read_count(FILE *text, const char *key)
{
    char *line = read_line(text);
    size_t length = strlen(key);
    char *end = line;
    long count = -1;
    if (strncmp(line, key, length) == 0 && line[length] == ' ')
        count = strtol(line + length + 1, &end, 10);
    if (count < 0 || *end)
        refuse();
    free(line);
    return count;
}

static char **read_lines(FILE *text, long count)
{
    char **lines = allocate((size_t)count, sizeof *lines);
    for (long i = 0; i < count; i++)
        lines[i] = read_line(text);
    return lines;
}

/* Returns the number of operations of all tasks. */
static long parse_text(char *text_bytes, size_t length, struct plan *plan)
{
    FILE *text = fmemopen(text_bytes, length, "r");
    if (!text)
        fail(EXIT_FAILURE, "the plan cannot be read from memory: %s", strerror(errno));

    char *seed = read_line(text);
    if (sscanf(seed, "seed %" SCNu64, &plan->seed) != 1)
        refuse();
    free(seed);

    long tasks = read_count(text, "tasks");
    if (tasks < 1 || tasks > INT_MAX)
        refuse();
    plan->tasks = (int)tasks;

    plan->call_count = read_count(text, "calls");
    plan->calls = read_lines(text, plan->call_count);
    plan->file_count = read_count(text, "files");
    plan->files = read_lines(text, plan->file_count);

    plan->step_count = read_count(text, "steps");
    plan->steps = allocate((size_t)plan->step_count, sizeof *plan->steps);
    for (long i = 0; i < plan->step_count; i++) {
        char *line = read_line(text);
        if (sscanf(line, "%63s %ld", plan->steps[i].phase, &plan->steps[i].repetition) != 2)
            refuse();
        free(line);
    }

    long operations = read_count(text, "operations");
    fclose(text);
    return operations;
}

/* Gives every rank its part of the operations, which rank 0 alone reads. */
static void scatter_operations(FILE *file, int rank, long total, struct plan *plan)
{
    int64_t *counts = NULL;
    int *lengths = NULL;
    int *starts = NULL;
    struct plan_operation *all = NULL;
    if (total > INT_MAX)
        fail(EXIT_USAGE, "%s has %ld operations, more than one replay can hand out", plan_path, total);
    if (rank == 0) {
        counts = allocate((size_t)plan->tasks, sizeof *counts);
        lengths = allocate((size_t)plan->tasks, sizeof *lengths);
        starts = allocate((size_t)plan->tasks, sizeof *starts);
        all = allocate((size_t)total, sizeof *all);
        read_exactly(file, counts, sizeof *counts, (size_t)plan->tasks);
        read_exactly(file, all, sizeof *all, (size_t)total);
        long used = 0;
        for (int task = 0; task < plan->tasks; task++) {
            if (counts[task] < 0 || counts[task] > total - used)
                refuse();
            lengths[task] = (int)counts[task];
            starts[task] = (int)used;
            used += counts[task];
        }
    }

    MPI_Datatype operation;
    MPI_Type_contiguous(sizeof(struct plan_operation) / sizeof(int64_t), MPI_INT64_T, &operation);
    MPI_Type_commit(&operation);
    int own = 0;
    MPI_Scatter(lengths, 1, MPI_INT, &own, 1, MPI_INT, 0, MPI_COMM_WORLD);
    plan->operation_count = own;
    plan->operations = allocate((size_t)own, sizeof *plan->operations);
    MPI_Scatterv(all, lengths, starts, operation, plan->operations, own, operation, 0, MPI_COMM_WORLD);
    MPI_Type_free(&operation);
    free(counts);
    free(lengths);
    free(starts);
    free(all);
}

void plan_distribute(const char *path, struct plan *plan)
{
    int rank, tasks;
    FILE *file = NULL;
    char *text = NULL;
    long length = 0;
    plan_path = path;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &tasks);
    if (rank == 0) {
        file = fopen(path, "r");
        if (!file)
            fail(EXIT_USAGE, "%s cannot be read: %s", path, strerror(errno));
        if (fscanf(file, "ensio-plan 1 %ld", &length) != 1 || fgetc(file) != '\n' || length < 1 ||
            length > MOST_HEADER_BYTES)
            refuse();
    }
    MPI_Bcast(&length, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    text = allocate((size_t)length, 1);
    if (rank == 0)
        read_exactly(file, text, 1, (size_t)length);
    MPI_Bcast(text, (int)length, MPI_CHAR, 0, MPI_COMM_WORLD);

    long operations = parse_text(text, (size_t)length, plan);
    free(text);
    if (plan->tasks != tasks)
        fail(EXIT_USAGE,
             "the plan is for %d tasks, but %d were started: start it with the mpiexec of the MPI that "
             "ensio-replay was built with",
             plan->tasks, tasks);
    scatter_operations(file, rank, operations, plan);
    if (file)
        fclose(file);
}
