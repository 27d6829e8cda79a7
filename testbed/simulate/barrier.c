#include "barrier.h"

#include "fail.h"
#include "twophase.h"

#include <inttypes.h>

static void refuse_mismatch(const struct simulation *simulation, int32_t number, int32_t first)
{
    fail(EXIT_USAGE,
         "tasks %" PRId32 " and %" PRId32 " make different collective calls in step %" PRId32 " of the plan", first,
         number, simulation->tasks[number].plan_step);
}

double gathered_s(const struct simulation *simulation, double bytes_of_task)
{
    /* Whatever the algorithm, the data of all other tasks enter through the node's link, once for each of its tasks. */
    const double bytes = bytes_of_task * (double)(simulation->plan.tasks - 1) * simulation->plan.tasks_per_node;
    return bytes / simulation->costs.message_bytes_per_s;
}

/* What the tasks tell each other before a collective call moves data: both ends of their ranges (two MPI_Allgather),
 * how many pieces each has for each aggregator (MPI_Alltoall), the pieces themselves (two messages from each task to
 * each of its aggregators), and the number of rounds (MPI_Allreduce). */
static double domains_ns(const struct simulation *simulation, double latency_ns)
{
    const struct costs *costs = &simulation->costs;
    const double everybody_ns = 4 * latency_ns + 1e9 * gathered_s(simulation, 2 * sizeof(int64_t) + sizeof(int32_t));
    const double pieces_ns = (double)costs->message_ns + 2 * (double)simulation->domains.receivers * costs->overhead_ns;
    return (everybody_ns + pieces_ns) * costs->exchange_scale;
}

/* The duration of a barrier's messages. */
static int64_t cost_ns(const struct simulation *simulation, enum barrier barrier, int64_t bytes)
{
    const double rounds = simulation->barrier_rounds;
    const double latency_ns = rounds * (double)simulation->costs.message_ns;
    double data_s = 0;
    if (barrier == BARRIER_ALLREDUCE)
        data_s = rounds * (double)bytes / simulation->costs.message_bytes_per_s;
    else if (barrier == BARRIER_ALLGATHER)
        data_s = gathered_s(simulation, (double)bytes);
    else if (barrier == BARRIER_DOMAINS)
        return (int64_t)domains_ns(simulation, latency_ns);
    return (int64_t)(latency_ns + 1e9 * data_s);
}

void barrier_arrive(struct simulation *simulation, int32_t number, int64_t now_ns)
{
    struct barrier_point *point = &simulation->barrier;
    struct task *task = &simulation->tasks[number];
    const struct plan_operation *operation = &task->operation;
    if (point->came == 0)
        *point = (struct barrier_point){
            .first_task = number, .step = task->step, .file = (int32_t)operation->file, .bytes = operation->bytes};
    else if (point->step != task->step || point->file != operation->file)
        refuse_mismatch(simulation, number, point->first_task);
    if (operation->bytes > point->bytes)
        point->bytes = operation->bytes;
    task->step++;
    if (++point->came < simulation->plan.tasks)
        return;
    point->came = 0;
    if (point->step->operation == BARRIER_DOMAINS)
        share_domains(simulation);
    const int64_t lasts_ns = cost_ns(simulation, (enum barrier)point->step->operation, point->bytes);
    simulation->everybody_ns = now_ns + (lasts_ns > 0 ? lasts_ns : 1);
}
