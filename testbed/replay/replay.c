/* ensio-replay PLAN: makes the calls of a plan, on real files, with real MPI.
 *
 * A step is what a task does between two barriers. Before it the task fills the data that it will write; after it, it
 * checks the data that it read; neither is part of the step, so that all tasks begin their calls together.
 */
#define _GNU_SOURCE
#include "calls.h"
#include "content.h"
#include "fail.h"
#include "plan.h"
#include "summary.h"

#include <errno.h>
#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_ALIGNMENT 4096

struct replay {
    int rank;
    struct plan plan;
    const struct call **calls;   /* by the plan's numbers */
    int *descriptors;            /* by file, -1: closed */
    unsigned char *data;         /* of one step: the data of its operations, one after the other */
    struct step_result *results; /* by step */
};

static void *allocate(size_t count, size_t bytes)
{
    void *memory = calloc(count ? count : 1, bytes);
    if (!memory)
        fail(EXIT_FAILURE, "no memory for %zu entries of %zu bytes", count, bytes);
    return memory;
}

/* The operations of one step: from `first` up to the one before the return value. */
static long end_of_step(const struct plan *plan, long first, long step)
{
    long end = first;
    while (end < plan->operation_count && plan->operations[end].step == step)
        end++;
    return end;
}

static void allocate_data(struct replay *replay)
{
    const struct plan *plan = &replay->plan;
    int64_t most = 0;
    int64_t sum = 0;
    for (long i = 0; i < plan->operation_count; i++) {
        sum = (i && plan->operations[i].step == plan->operations[i - 1].step ? sum : 0) + plan->operations[i].bytes;
        most = sum > most ? sum : most;
    }
    int error = posix_memalign((void **)&replay->data, BUFFER_ALIGNMENT, most ? (size_t)most : 1);
    if (error)
        fail(EXIT_FAILURE, "rank %d: no memory for the %" PRId64 " bytes of one step: %s", replay->rank, most,
             strerror(error));
}

static void prepare_data(struct replay *replay, long first, long end)
{
    unsigned char *data = replay->data;
    for (long i = first; i < end; i++) {
        const struct plan_operation *operation = &replay->plan.operations[i];
        if (replay->calls[operation->call]->direction == CALL_WRITES)
            content_fill(replay->plan.seed, operation->file, operation->offset, operation->bytes, data);
        else
            memset(data, 0, (size_t)operation->bytes); /* what an earlier step left there would pass for read data */
        data += operation->bytes;
    }
}

static void make_call(struct replay *replay, const struct plan_operation *operation, unsigned char *data,
                      struct step_result *result)
{
    const struct call *call = replay->calls[operation->call];
    struct call_target target = {
        .path = replay->plan.files[operation->file],
        .descriptor = &replay->descriptors[operation->file],
        .offset = operation->offset,
        .bytes = operation->bytes,
        .data = data,
    };
    double start = MPI_Wtime();
    int error = call->make(&target) ? errno : 0;
    result->calls_s += MPI_Wtime() - start;
    result->calls += target.made;
    result->bytes += target.moved;
    if (error)
        fail(EXIT_FAILURE, "rank %d: %s of %s failed at offset %" PRId64 ": %s", replay->rank, call->name, target.path,
             operation->offset + target.moved, strerror(error));
    if (target.moved < operation->bytes)
        fail(EXIT_FAILURE, "rank %d: %s of %" PRId64 " bytes of %s at offset %" PRId64 " ended after %" PRId64 " bytes",
             replay->rank, call->name, operation->bytes, target.path, operation->offset, target.moved);
}

static void check_data(const struct replay *replay, long first, long end)
{
    const unsigned char *data = replay->data;
    for (long i = first; i < end; i++) {
        const struct plan_operation *operation = &replay->plan.operations[i];
        if (replay->calls[operation->call]->direction == CALL_READS) {
            int64_t good =
                content_agrees(replay->plan.seed, operation->file, operation->offset, operation->bytes, data);
            if (good < operation->bytes)
                fail(EXIT_FAILURE, "rank %d: %s read back from offset %" PRId64 " is not what was written there",
                     replay->rank, replay->plan.files[operation->file], operation->offset + good);
        }
        data += operation->bytes;
    }
}

static void run_step(struct replay *replay, long step, long first, long end)
{
    unsigned char *data = replay->data;
    prepare_data(replay, first, end);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (long i = first; i < end; i++) {
        make_call(replay, &replay->plan.operations[i], data, &replay->results[step]);
        data += replay->plan.operations[i].bytes;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    replay->results[step].barrier_s = MPI_Wtime() - start;
    check_data(replay, first, end);
}

static void run(struct replay *replay)
{
    const struct plan *plan = &replay->plan;
    replay->calls = allocate((size_t)plan->call_count, sizeof *replay->calls);
    for (long i = 0; i < plan->call_count; i++) {
        replay->calls[i] = call_named(plan->calls[i]);
        if (!replay->calls[i])
            fail(EXIT_USAGE, "the plan names the call %s, which this ensio-replay does not know", plan->calls[i]);
    }
    replay->descriptors = allocate((size_t)plan->file_count, sizeof *replay->descriptors);
    for (long i = 0; i < plan->file_count; i++)
        replay->descriptors[i] = -1;
    replay->results = allocate((size_t)plan->step_count, sizeof *replay->results);
    allocate_data(replay);

    long first = 0;
    for (long step = 0; step < plan->step_count; step++) {
        long end = end_of_step(plan, first, step);
        run_step(replay, step, first, end);
        first = end;
    }
}

int main(int argc, char **argv)
{
    struct replay replay = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &replay.rank);
    if (argc != 2)
        fail(EXIT_USAGE, "it takes one argument, a plan: start it through ensio replay");
    plan_distribute(argv[1], &replay.plan);
    run(&replay);
    summary_print(&replay.plan, replay.results);
    MPI_Finalize();
    return EXIT_SUCCESS;
}
