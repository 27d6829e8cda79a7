/* ensio-replay [--progress] [--as-recorded] PLAN: makes the calls of a plan, on real files, with real MPI.
 *
 * A step is what a task does between two barriers. Before it the task fills the data that it will write; after it, it
 * checks the data that it read; neither is part of the step, so that all tasks begin their calls together. The barrier
 * at a step's end is recorded, and each step is a separate phase to the recorder. With --progress, task 0 prints a
 * line after each step. With --as-recorded, the plan has one step, the calls of a recorded run (as_recorded.h).
 */
#define _GNU_SOURCE
#include "as_recorded.h"
#include "calls.h"
#include "fail.h"
#include "plan.h"
#include "summary.h"
#include "unrecorded.h"

#include <ensio/ensio.h>
#include <errno.h>
#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFER_ALIGNMENT 4096

struct replay {
    struct plan plan;
    const struct layer **layers; /* by the plan's calls */
    const struct call **calls;   /* by the plan's calls */
    struct open_file *files;
    unsigned char *data;         /* of one step: the data of its operations, one after the other */
    struct call_target *targets; /* of one step */
    struct step_result *results; /* by step */
    int tells_progress;
};

static void *allocate(size_t count, size_t bytes)
{
    void *memory = calloc(count ? count : 1, bytes);
    if (!memory)
        fail(EXIT_FAILURE, "no memory for %zu entries of %zu bytes", count, bytes);
    return memory;
}

static const struct call *call_of(const struct replay *replay, const struct plan_operation *operation)
{
    return replay->calls[operation->call];
}

static int64_t room_for(const struct replay *replay, const struct plan_operation *operation)
{
    const struct call_data *data = call_of(replay, operation)->data;
    return data ? data->room(&replay->plan, operation) : 0;
}

/* The operations of one step: from `first` up to the one before the return value. */
static long end_of_step(const struct plan *plan, long first, long step)
{
    long end = first;
    while (end < plan->operation_count && plan->operations[end].step == step)
        end++;
    return end;
}

/* Allocates memory for the data and the calls of the largest step. */
static void allocate_step(struct replay *replay)
{
    const struct plan *plan = &replay->plan;
    int64_t most_bytes = 1, most_calls = 1, bytes = 0, calls = 0;
    for (long i = 0; i < plan->operation_count; i++) {
        if (plan->operations[i].call == PLAN_FURTHER_BOX)
            continue;
        if (i && plan->operations[i].step != plan->operations[i - 1].step)
            bytes = calls = 0;
        bytes += room_for(replay, &plan->operations[i]);
        calls++;
        most_bytes = bytes > most_bytes ? bytes : most_bytes;
        most_calls = calls > most_calls ? calls : most_calls;
    }
    replay->targets = allocate((size_t)most_calls, sizeof *replay->targets);
    int error = posix_memalign((void **)&replay->data, BUFFER_ALIGNMENT, (size_t)most_bytes);
    if (error)
        fail(EXIT_FAILURE, "rank %d: no memory for the %" PRId64 " bytes of one step: %s", plan->rank, most_bytes,
             strerror(error));
}

/* A message about a failed call begins with task, file and call. */
static void fail_at(const struct replay *replay, const struct call_target *target, const char *what)
{
    const struct plan_operation *operation = target->operation;
    const char *name = replay->plan.calls[operation->call];
    if (!target->file)
        fail(EXIT_FAILURE, "rank %d: %s %s", replay->plan.rank, name, what);
    fail(EXIT_FAILURE, "rank %d: %s of %s at offset %" PRId64 " %s", replay->plan.rank, name, target->file->path,
         operation->offset, what);
}

/* Returns the number of calls. */
static long prepare_step(struct replay *replay, long first, long end)
{
    unsigned char *data = replay->data;
    struct call_target *target = replay->targets;
    const struct plan_operation *operation = &replay->plan.operations[first];
    for (; operation < &replay->plan.operations[end]; operation = plan_next(operation), target++) {
        const struct call *call = call_of(replay, operation);
        *target = (struct call_target){
            .plan = &replay->plan,
            .operation = operation,
            .file = operation->file < 0 ? NULL : &replay->files[operation->file],
            .data = data,
        };
        if (call->data)
            call->data->fill(target);
        data += room_for(replay, operation);
    }
    return target - replay->targets;
}

/* Makes one call, or several that are started together. */
static void make_calls(struct replay *replay, struct call_target *targets, long count, struct step_result *result)
{
    const struct call *call = call_of(replay, targets->operation);
    if (call->on == OPEN_FILE && !replay->layers[targets->operation->call]->is_open(targets->file))
        fail_at(replay, targets, "cannot be made: the file is not open there");
    double start = MPI_Wtime();
    int error = call->make(targets, count) ? errno : 0;
    int is_wrong = error || targets->problem[0];
    if (!call->is_idle)
        result->calls_s += MPI_Wtime() - start;
    for (long i = 0; i < count; i++) {
        result->calls += targets[i].made;
        result->bytes += targets[i].moved;
    }
    if (is_wrong && !targets->problem[0])
        snprintf(targets->problem, sizeof targets->problem, "failed: %s", strerror(error));
    if (!is_wrong && call->data && call->data->moves_file_bytes && targets->moved < plan_bytes(targets->operation))
        snprintf(targets->problem, sizeof targets->problem, "ended after %" PRId64 " of %" PRId64 " bytes",
                 targets->moved, plan_bytes(targets->operation));
    if (targets->problem[0])
        fail_at(replay, targets, targets->problem);
}

static void check_step(const struct replay *replay, long count)
{
    for (long i = 0; i < count; i++) {
        struct call_target *target = &replay->targets[i];
        const struct call_data *data = call_of(replay, target->operation)->data;
        if (data && data->is_right && !data->is_right(target))
            fail_at(replay, target, target->problem);
    }
}

/* The number of operations from the i-th on that are started together: consecutive ones of the same call. */
static long together_from(const struct replay *replay, long i, long count)
{
    long end = i + 1;
    if (call_of(replay, replay->targets[i].operation)->together)
        while (end < count && replay->targets[end].operation->call == replay->targets[i].operation->call)
            end++;
    return end - i;
}

/* A barrier that is not recorded: PMPI_Barrier is. */
static void wait_for_all(void)
{
    int ready = 1;
    PMPI_Allreduce(MPI_IN_PLACE, &ready, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static void run_step(struct replay *replay, long step, long first, long end)
{
    const long count = prepare_step(replay, first, end);
    wait_for_all();
    ensio_phase(replay->plan.steps[step].phase);
    double start = MPI_Wtime();
    for (long i = 0, made; i < count; i += made) {
        made = together_from(replay, i, count);
        make_calls(replay, &replay->targets[i], made, &replay->results[step]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    replay->results[step].barrier_s = MPI_Wtime() - start;
    check_step(replay, count);
}

/* A line that ensembles/cli/replay_program.py reads. */
static void tell_progress(const struct replay *replay, long steps)
{
    char line[64];
    if (!replay->tells_progress || replay->plan.rank)
        return;
    const int length = snprintf(line, sizeof line, "steps done: %ld\n", steps);
    unrecorded_write(STDOUT_FILENO, line, (size_t)length);
}

static void find_calls(struct replay *replay)
{
    const struct plan *plan = &replay->plan;
    replay->layers = allocate((size_t)plan->call_count, sizeof *replay->layers);
    replay->calls = allocate((size_t)plan->call_count, sizeof *replay->calls);
    for (long i = 0; i < plan->call_count; i++) {
        call_named(plan->calls[i], &replay->layers[i], &replay->calls[i]);
        if (replay->layers[i] && !replay->layers[i]->calls)
            fail(EXIT_USAGE, "the plan names the call %s, but this ensio-replay %s", plan->calls[i],
                 replay->layers[i]->missing);
        if (!replay->calls[i])
            fail(EXIT_USAGE, "the plan names the call %s, which this ensio-replay does not know", plan->calls[i]);
    }
    for (long i = 0; i < plan->operation_count; i++) {
        const struct plan_operation *operation = &plan->operations[i];
        if (operation->call == PLAN_FURTHER_BOX)
            continue;
        if (!call_of(replay, operation)->in_boxes && operation[1].call == PLAN_FURTHER_BOX)
            fail(EXIT_USAGE, "the plan has a %s of several boxes, which calls of MPI-IO and NetCDF can have",
                 plan->calls[operation->call]);
        if (call_of(replay, operation)->on != NOTHING && operation->file < 0)
            fail(EXIT_USAGE, "rank %d: the plan names no file for a %s", plan->rank, plan->calls[operation->call]);
    }
}

/* Lets the layers that the plan uses, which are the same in all tasks, prepare. */
static void look_ahead(struct replay *replay)
{
    const struct plan *plan = &replay->plan;
    for (long i = 0; i < plan->call_count; i++) {
        int is_first = 1;
        for (long before = 0; before < i; before++)
            is_first = is_first && replay->layers[before] != replay->layers[i];
        if (is_first && replay->layers[i]->look_ahead)
            replay->layers[i]->look_ahead(plan, replay->files);
    }
}

static void run(struct replay *replay, const char *path)
{
    const struct plan *plan = &replay->plan;
    find_calls(replay);
    replay->files = allocate((size_t)plan->file_count, sizeof *replay->files);
    for (long i = 0; i < plan->file_count; i++)
        replay->files[i] = (struct open_file){.path = plan->files[i], .descriptor = -1};
    replay->results = allocate((size_t)plan->step_count, sizeof *replay->results);
    look_ahead(replay);
    if (plan->is_recorded) {
        make_as_recorded(path, plan, replay->layers, replay->calls, replay->files, replay->results);
        return;
    }
    allocate_step(replay);

    long first = 0;
    for (long step = 0; step < plan->step_count; step++) {
        long end = end_of_step(plan, first, step);
        run_step(replay, step, first, end);
        tell_progress(replay, step + 1);
        first = end;
    }
}

int main(int argc, char **argv)
{
    struct replay replay = {0};
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        puts("usage: mpiexec -n TASKS ensio-replay [--progress] [--as-recorded] PLAN\n\n"
             "Make the calls of a plan, on real files, with real MPI. `ensio replay` writes the plan of a pattern\n"
             "and starts this program; --progress: task 0 prints a line after each step; --as-recorded: the plan is "
             "that\n"
             "of a recorded run, whose calls follow each other without barriers between steps.");
        return EXIT_SUCCESS;
    }
    MPI_Init(&argc, &argv);
    PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (; argc > 2; argc--, argv++)
        if (strcmp(argv[1], "--progress") == 0)
            replay.tells_progress = 1;
        else if (strcmp(argv[1], "--as-recorded") == 0)
            replay.plan.is_recorded = 1;
        else
            break;
    if (argc != 2)
        fail(EXIT_USAGE, "it takes one argument, a plan: start it through ensio replay");
    plan_distribute(argv[1], &replay.plan);
    run(&replay, argv[1]);
    summary_print(&replay.plan, replay.results);
    MPI_Finalize();
    return EXIT_SUCCESS;
}
