#include "twophase.h"

#include "barrier.h"
#include "fail.h"
#include "calls.h"
#include "hdf5_files.h"

#include <stdlib.h>

#define DEFAULT_CHUNK_BYTES ((int64_t)16 << 20) /* ROMIO's cb_buffer_size */

enum stage { FIRST, NEXT_CHUNK, MOVE, WRITE_BACK };

static int by_begin(const void *a, const void *b)
{
    const struct run *first = a, *second = b;
    return (first->begin > second->begin) - (first->begin < second->begin);
}

/* The distance from the first to the last byte of a box. */
static int64_t extent(const struct plan_operation *box)
{
    const int64_t last = (box->planes - 1) * box->plane_stride + (box->pieces - 1) * box->stride;
    return last + box->bytes / (box->planes * box->pieces);
}

/* Makes room for the boxes of all tasks. */
static void make_room(struct simulation *simulation)
{
    struct domains *domains = &simulation->domains;
    int64_t boxes = 0;
    for (int32_t i = 0; i < simulation->plan.tasks; i++)
        boxes += simulation->tasks[i].boxes;
    if (boxes <= domains->room)
        return;
    free(domains->runs);
    free(domains->begins);
    free(domains->ends);
    domains->runs = zeroed((size_t)boxes, sizeof *domains->runs, "the bytes of collective calls");
    domains->begins = zeroed((size_t)boxes, sizeof *domains->begins, "the bytes of collective calls");
    domains->ends = zeroed((size_t)boxes, sizeof *domains->ends, "the bytes of collective calls");
    domains->room = boxes;
}

static int by_value(const void *a, const void *b)
{
    const int64_t first = *(const int64_t *)a, second = *(const int64_t *)b;
    return (first > second) - (first < second);
}

static void sort(int64_t *values, int64_t count)
{
    for (int64_t i = 1; i < count; i++)
        if (values[i] < values[i - 1]) {
            qsort(values, (size_t)count, sizeof *values, by_value);
            return;
        }
}

/* The number of sorted values that are less than a limit. */
static int64_t count_below(const int64_t *values, int64_t count, int64_t limit)
{
    int64_t low = 0;
    while (low < count) {
        const int64_t middle = (low + count) / 2;
        if (values[middle] < limit)
            low = middle + 1;
        else
            count = middle;
    }
    return low;
}

/* The number of tasks that have bytes in a range. Boxes of a task lie apart, and rarely in the same range. */
static int64_t tasks_between(const struct simulation *simulation, int64_t begin, int64_t end)
{
    const struct domains *domains = &simulation->domains;
    const int64_t boxes = count_below(domains->begins, domains->box_count, end) -
                          count_below(domains->ends, domains->box_count, begin + 1);
    return boxes < simulation->plan.tasks ? boxes : simulation->plan.tasks;
}

/* Sorts the ranges of all tasks, and merges adjacent ones. */
static void merge_runs(struct domains *domains)
{
    int in_order = 1;
    for (int64_t i = 1; i < domains->run_count && in_order; i++)
        in_order = domains->runs[i].begin >= domains->runs[i - 1].begin;
    if (!in_order)
        qsort(domains->runs, (size_t)domains->run_count, sizeof *domains->runs, by_begin);
    int64_t kept = 0;
    for (int64_t i = 0; i < domains->run_count; i++) {
        const struct run run = domains->runs[i];
        if (kept && run.begin <= domains->runs[kept - 1].end) {
            if (run.end > domains->runs[kept - 1].end)
                domains->runs[kept - 1].end = run.end;
        } else {
            domains->runs[kept++] = run;
        }
    }
    domains->run_count = kept;
}

void share_domains(struct simulation *simulation)
{
    const struct plan *plan = &simulation->plan;
    struct domains *domains = &simulation->domains;
    make_room(simulation);
    int64_t bytes = 0, covered = 0;
    int strided = 0;
    domains->run_count = 0;
    for (int32_t i = 0; i < plan->tasks; i++) {
        const struct task *task = &simulation->tasks[i];
        for (int64_t k = 0; k < task->boxes; k++) {
            const struct plan_operation box = k ? plan_box(plan, task->row, k) : task->operation;
            if (box.bytes <= 0)
                continue;
            const int64_t begin = data_offset(simulation, &box), length = extent(&box);
            domains->begins[domains->run_count] = begin;
            domains->ends[domains->run_count] = begin + length;
            domains->runs[domains->run_count++] = (struct run){begin, begin + length};
            bytes += box.bytes;
            strided |= length > box.bytes;
        }
    }
    domains->box_count = domains->run_count;
    sort(domains->begins, domains->box_count);
    sort(domains->ends, domains->box_count);
    merge_runs(domains);
    for (int64_t i = 0; i < domains->run_count; i++)
        covered += domains->runs[i].end - domains->runs[i].begin;
    domains->has_holes = strided && bytes < covered;
    domains->begin = domains->run_count ? domains->runs[0].begin : 0;
    domains->end = domains->run_count ? domains->runs[domains->run_count - 1].end : 0;
    const int64_t wanted = plan_hint_number(plan, "cb_nodes", plan->nodes);
    domains->aggregators = (int32_t)(wanted < plan->tasks ? wanted : plan->tasks);
    domains->chunk_bytes = plan_hint_number(plan, "cb_buffer_size", DEFAULT_CHUNK_BYTES);
    /* If the stripe length is known, domains end at stripe boundaries. */
    const int64_t unit = plan_hint_number(plan, "striping_unit", 1);
    domains->begin -= domains->begin % unit;
    domains->domain_bytes = (domains->end - domains->begin + domains->aggregators - 1) / domains->aggregators;
    domains->domain_bytes = (domains->domain_bytes + unit - 1) / unit * unit;
    domains->receivers = 0;
    for (int64_t i = 0; i < domains->aggregators; i++) {
        const int64_t begin = domains->begin + i * domains->domain_bytes;
        const int64_t tasks = tasks_between(simulation, begin, begin + domains->domain_bytes);
        domains->receivers = tasks > domains->receivers ? tasks : domains->receivers;
    }
}

/* The index of a task's aggregator; -1: none. Aggregators are spread over the nodes, one on each if possible. */
static int32_t aggregator_of(const struct simulation *simulation, int32_t number)
{
    const struct plan *plan = &simulation->plan;
    const int64_t aggregators = simulation->domains.aggregators;
    int64_t place = number, places = plan->tasks;
    if (aggregators <= plan->nodes) {
        if (number % plan->tasks_per_node)
            return -1;
        place = number / plan->tasks_per_node;
        places = plan->nodes;
    }
    const int64_t nearest = (place * aggregators + places - 1) / places;
    return nearest < aggregators && nearest * places / aggregators == place ? (int32_t)nearest : -1;
}

/* The first run that ends after a position, or NULL. */
static const struct run *run_after(const struct domains *domains, int64_t place)
{
    int64_t low = 0, high = domains->run_count;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (domains->runs[middle].end > place)
            high = middle;
        else
            low = middle + 1;
    }
    return low < domains->run_count ? &domains->runs[low] : NULL;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Waits for the messages with a chunk's data. */
static void exchange_chunk(struct simulation *simulation, int32_t number, int64_t now_ns, int64_t begin, int64_t end)
{
    const struct domains *domains = &simulation->domains;
    const struct costs *costs = &simulation->costs;
    int64_t bytes = 0;
    for (const struct run *run = run_after(domains, begin);
         run && run < domains->runs + domains->run_count && run->begin < end; run++)
        bytes += least(run->end, end) - (run->begin > begin ? run->begin : begin);
    const double sizes_ns =
        simulation->barrier_rounds * (double)costs->message_ns + 1e9 * gathered_s(simulation, sizeof(int32_t));
    const double handled_ns = (double)tasks_between(simulation, begin, end) * costs->overhead_ns;
    const double data_ns = (double)costs->message_ns + handled_ns + 1e9 * (double)bytes / costs->message_bytes_per_s;
    const double lasts_ns = (sizes_ns + data_ns) * costs->exchange_scale;
    pfs_wait(simulation->model, number, now_ns + 1 + (int64_t)lasts_ns);
}

int aggregate(struct simulation *simulation, int32_t number, int64_t now_ns)
{
    const struct domains *domains = &simulation->domains;
    struct task *task = &simulation->tasks[number];
    const int writes = task->step->operation == PFS_WRITE;
    const int32_t aggregator = aggregator_of(simulation, number);
    if (aggregator < 0)
        return 0;
    const int64_t domain = domains->begin + aggregator * domains->domain_bytes;
    const int64_t domain_end = least(domain + domains->domain_bytes, domains->end);
    if (task->stage == FIRST) {
        task->at = domain;
        task->stage = NEXT_CHUNK;
    }
    for (;;) {
        const struct run *run = run_after(domains, task->at);
        const int64_t begin = run && run->begin > task->at ? run->begin : task->at;
        if (task->stage == NEXT_CHUNK) {
            if (!run || begin >= domain_end) {
                task->stage = FIRST;
                task->at = 0;
                return 0;
            }
            task->at = begin;
            task->window_begin = begin;
            task->window_end =
                least(domain_end, domain + ((begin - domain) / domains->chunk_bytes + 1) * domains->chunk_bytes);
            task->stage = MOVE;
            if (writes) {
                exchange_chunk(simulation, number, now_ns, begin, task->window_end);
                return 1;
            }
        }
        if (!run || begin >= task->window_end) {
            task->at = task->window_end;
            task->stage = NEXT_CHUNK;
            if (writes)
                continue;
            exchange_chunk(simulation, number, now_ns, task->window_begin, task->window_end);
            return 1;
        }
        const int64_t bytes = least(run->end, task->window_end) - begin;
        const int64_t file = task->operation.file;
        if (writes && domains->has_holes && task->stage == MOVE) {
            task->stage = WRITE_BACK;
            begin_model_call(simulation, number, now_ns, RECORDED_pread, PFS_READ, file, begin, bytes);
        } else {
            task->stage = MOVE;
            task->at = begin + bytes;
            begin_model_call(simulation, number, now_ns, task->step->recorded, task->step->operation, file, begin,
                             bytes);
        }
        return 1;
    }
}
