/* The calls in which tasks wait for each other or exchange messages. The data of a message are those of a virtual file
 * of the sending task: number -1 - rank, from its start. */
#define _GNU_SOURCE
#include "calls.h"
#include "data_pattern.h"
#include "fail.h"
#include "mpi_errors.h"

#include <inttypes.h>
#include <limits.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#define EXCHANGE_TAG 2

static int64_t message_of(int64_t task)
{
    return -1 - task;
}

/* Counts of MPI 3 are of type int. */
static int count_of(int64_t bytes)
{
    if (bytes > INT_MAX)
        fail(EXIT_USAGE, "the plan has a message of %" PRId64 " bytes: MPI sends up to %d at once", bytes, INT_MAX);
    return (int)bytes;
}

static int is_from(struct call_target *target, int64_t task, int64_t bytes, const unsigned char *data)
{
    if (data_pattern_matches(target->plan->seed, message_of(task), 0, bytes, data) == bytes)
        return 1;
    snprintf(target->problem, sizeof target->problem, "got something that task %" PRId64 " did not send", task);
    return 0;
}

static int make_barrier(struct call_target *target, long count)
{
    target->made += count;
    return mpi_succeeded(target, MPI_Barrier(MPI_COMM_WORLD)) ? 0 : -1;
}

/* The data sent, followed by those received from all tasks. */
static int64_t room_of_allgather(const struct plan *plan, const struct plan_operation *operation)
{
    return operation->bytes * (plan->tasks + 1);
}

static void fill_allgather(const struct call_target *target)
{
    int64_t bytes = target->operation->bytes;
    data_pattern_fill(target->plan->seed, message_of(target->plan->rank), 0, bytes, target->data);
    memset(target->data + bytes, 0, (size_t)(bytes * target->plan->tasks));
}

static int is_allgather_right(struct call_target *target)
{
    int64_t bytes = target->operation->bytes;
    for (int task = 0; task < target->plan->tasks; task++)
        if (!is_from(target, task, bytes, target->data + (1 + task) * bytes))
            return 0;
    return 1;
}

static int make_allgather(struct call_target *target, long count)
{
    int bytes = count_of(target->operation->bytes);
    target->made += count;
    return mpi_succeeded(target, MPI_Allgather(target->data, bytes, MPI_BYTE, target->data + bytes, bytes, MPI_BYTE,
                                               MPI_COMM_WORLD))
               ? 0
               : -1;
}

/* The data sent, followed by the result: each byte is the maximum of rank % 251 over all tasks. */
static int64_t room_of_allreduce(const struct plan *plan, const struct plan_operation *operation)
{
    (void)plan;
    return 2 * operation->bytes;
}

#define LARGEST_VALUE 250

static void fill_allreduce(const struct call_target *target)
{
    size_t bytes = (size_t)target->operation->bytes;
    memset(target->data, target->plan->rank % (LARGEST_VALUE + 1), bytes);
    memset(target->data + bytes, LARGEST_VALUE + 1, bytes);
}

static int is_allreduce_right(struct call_target *target)
{
    int64_t bytes = target->operation->bytes;
    int largest = target->plan->tasks > LARGEST_VALUE ? LARGEST_VALUE : target->plan->tasks - 1;
    for (int64_t i = bytes; i < 2 * bytes; i++)
        if (target->data[i] != largest) {
            snprintf(target->problem, sizeof target->problem, "gave %d where the tasks' largest value is %d",
                     target->data[i], largest);
            return 0;
        }
    return 1;
}

static int make_allreduce(struct call_target *target, long count)
{
    int bytes = count_of(target->operation->bytes);
    target->made += count;
    return mpi_succeeded(target, MPI_Allreduce(target->data, target->data + bytes, bytes, MPI_UNSIGNED_CHAR, MPI_MAX,
                                               MPI_COMM_WORLD))
               ? 0
               : -1;
}

static int64_t room_of_exchange(const struct plan *plan, const struct plan_operation *operation)
{
    (void)plan;
    return operation->bytes < 0 ? -operation->bytes : operation->bytes;
}

static void fill_exchange(const struct call_target *target)
{
    int64_t bytes = target->operation->bytes;
    if (bytes > 0)
        data_pattern_fill(target->plan->seed, message_of(target->plan->rank), 0, bytes, target->data);
    else
        memset(target->data, 0, (size_t)-bytes);
}

static int is_exchange_right(struct call_target *target)
{
    int64_t bytes = -target->operation->bytes;
    return bytes <= 0 || is_from(target, target->operation->offset, bytes, target->data);
}

/* Posts receives first, so that messages are not unexpected. */
static int make_exchange(struct call_target *targets, long count)
{
    MPI_Request *requests = calloc((size_t)count, sizeof *requests);
    MPI_Status *statuses = calloc((size_t)count, sizeof *statuses);
    int begun = 0;
    int code = MPI_SUCCESS;
    if (!requests || !statuses)
        fail(EXIT_FAILURE, "no memory for %ld messages", count);
    for (int sends = 0; sends <= 1; sends++)
        for (long i = 0; i < count && code == MPI_SUCCESS; i++) {
            const struct plan_operation *operation = targets[i].operation;
            int peer = (int)operation->offset;
            if ((operation->bytes > 0) != sends)
                continue;
            targets[i].made++;
            if (sends)
                code = MPI_Isend(targets[i].data, count_of(operation->bytes), MPI_BYTE, peer, EXCHANGE_TAG,
                                 MPI_COMM_WORLD, &requests[begun++]);
            else
                code = MPI_Irecv(targets[i].data, count_of(-operation->bytes), MPI_BYTE, peer, EXCHANGE_TAG,
                                 MPI_COMM_WORLD, &requests[begun++]);
        }
    if (code == MPI_SUCCESS)
        code = MPI_Waitall(begun, requests, statuses);
    free(requests);
    free(statuses);
    return mpi_succeeded(targets, code) ? 0 : -1;
}

static void look_ahead(const struct plan *plan, struct open_file *files)
{
    (void)files;
    for (long i = 0; i < plan->operation_count; i++) {
        const struct plan_operation *operation = &plan->operations[i];
        if (is_of_layer(plan, operation, &mpi_layer) && strcmp(plan->calls[operation->call], "mpi.exchange") == 0 &&
            operation->offset >= plan->tasks)
            fail(EXIT_USAGE, "rank %d: the plan has an exchange with task %" PRId64 ", but there are %d tasks",
                 plan->rank, operation->offset, plan->tasks);
    }
}

static const struct call_data gathered = {
    .room = room_of_allgather, .fill = fill_allgather, .is_right = is_allgather_right};
static const struct call_data reduced = {
    .room = room_of_allreduce, .fill = fill_allreduce, .is_right = is_allreduce_right};
static const struct call_data exchanged = {
    .room = room_of_exchange, .fill = fill_exchange, .is_right = is_exchange_right};

static const struct call calls[] = {
    {.name = "barrier", .make = make_barrier},
    {.name = "allgather", .make = make_allgather, .data = &gathered},
    {.name = "allreduce", .make = make_allreduce, .data = &reduced},
    {.name = "exchange", .make = make_exchange, .data = &exchanged, .together = 1},
    {.name = NULL},
};

const struct layer mpi_layer = {.name = "mpi", .calls = calls, .look_ahead = look_ahead};
