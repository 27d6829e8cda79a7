#include "calls.h"

#include "cache.h"
#include "joined.h"
#include "locks.h"
#include "metadata.h"
#include "nodes.h"
#include "noise.h"
#include "readahead.h"
#include "sharing.h"
#include "streams.h"
#include "targets.h"

static int moves_data(const struct task *task)
{
    return task->call.operation == PFS_READ || task->call.operation == PFS_WRITE;
}

static void not_before(struct task *task, double ns)
{
    int64_t time_ns = task->began_ns + whole(ns);
    if (time_ns > task->earliest_ns)
        task->earliest_ns = time_ns;
}

/* The duration of a call without contention: the client limits the requests in flight. Some calls use a path that loses
 * messages, whatever their size; the whole call is slow then. */
static void add_stream_time(const struct pfs *model, struct task *task, int32_t id)
{
    const struct pfs_settings *settings = &model->settings;
    double ns = (double)task->rest_bytes * 1e3 / settings->stream_MB_per_s;
    ns *= noise_factor(model, settings->call_noise, NOISE_CALL, (uint64_t)id, task->number, 0);
    double heavy = settings->fault.single_large_call * settings->heavy_share;
    if (heavy > 0 && noise_uniform(model, NOISE_HEAVY, (uint64_t)id, task->number, 0) < heavy)
        ns *= settings->heavy_factor *
              noise_factor(model, settings->heavy_noise, NOISE_HEAVY_SIZE, (uint64_t)id, task->number, 0);
    not_before(task, ns + settings->link_latency_us * 1e3);
}

/* Servers work on the requests of many calls in no particular order, so that calls have unequal shares. The order of
 * requests is drawn for each, and averages out in large calls. */
static float share_of(const struct pfs *model, const struct task *task, int32_t id)
{
    double sigma = model->settings.share_noise;
    if (sigma <= 0)
        return 1;
    double requests = (double)task->rest_bytes / (double)model->stripe_bytes;
    if (requests > 1)
        sigma /= __builtin_sqrt(requests);
    return (float)noise_factor(model, sigma, NOISE_SHARE, (uint64_t)id, task->number, 0);
}

static void add_memory_part(struct pfs *model, struct task *task, int32_t id, int64_t bytes)
{
    double ns = (double)bytes * 1e3 / model->settings.absorb_MB_per_s + model->settings.client_call_us * 1e3;
    task->parts += sharing_add(model, memory_queue(model, task->node), PART_CALL, id, ns, 1);
}

static void begin_write(struct pfs *model, struct task *task, int32_t id)
{
    locks_come(model, id, task->call.file);
    int ragged = locks_write(model, id);
    int64_t absorbed = ragged || task->call.through ? 0 : cache_absorb(model, id);
    task->rest_offset = task->call.offset + absorbed;
    task->rest_bytes = task->call.bytes - absorbed;
    readahead_has_written(model, id);
    if (absorbed > 0)
        add_memory_part(model, task, id, absorbed);
}

static void begin_read(struct pfs *model, struct task *task, int32_t id)
{
    const struct pfs_settings *settings = &model->settings;
    locks_come(model, id, task->call.file);
    struct read_plan plan = readahead_read(model, id);
    task->rest_offset = plan.offset;
    task->rest_bytes = plan.bytes;
    if (plan.pages > 0)
        not_before(task, plan.pages * settings->page_ms * 1e6 * settings->fault.strided_readahead *
                             noise_factor(model, settings->page_noise, NOISE_PAGES, (uint64_t)id, task->number, 0));
    if (plan.bytes == 0)
        add_memory_part(model, task, id, task->call.bytes);
}

static void begin_data(struct pfs *model, struct task *task, int32_t id)
{
    if (task->call.bytes <= 0) {
        call_part_done(model, id);
        return;
    }
    if (model->settings.fault.small_requests > 0)
        not_before(task,
                   model->settings.fault.small_requests * model->settings.small_request_ms * 1e6 *
                       noise_factor(model, model->settings.call_noise, NOISE_CALL, (uint64_t)id, task->number, 1));
    if (task->call.operation == PFS_WRITE)
        begin_write(model, task, id);
    else
        begin_read(model, task, id);
    if (task->call.operation == PFS_READ && task->rest_bytes > 0 && joined_read(model, id))
        return;
    if (task->rest_bytes > 0)
        nodes_ask(model, id); /* the part that was counted at the beginning represents it until it is served */
    else
        call_part_done(model, id);
}

void call_serve(struct pfs *model, int32_t id, float weight)
{
    const struct pfs_settings *settings = &model->settings;
    struct task *task = task_at(model, id);
    struct transfer transfer = {.kind = PART_CALL,
                                .task = id,
                                .file = task->call.file,
                                .offset = task->rest_offset,
                                .bytes = task->rest_bytes,
                                .number = task->number,
                                .weight = weight * share_of(model, task, id),
                                .factor = 1};
    add_stream_time(model, task, id);
    if (task->call.operation == PFS_WRITE) {
        transfer.first_extra_ns = task->first_extra_ns;
        transfer.last_extra_ns = task->last_extra_ns;
        transfer.factor = locks_writers(model, task->call.file);
        if (!task->call.through && settings->cache_MiB > 0 && task->first_extra_ns + task->last_extra_ns <= 0)
            transfer.factor *= 1 + settings->fault.cache_cliff * (settings->cache_cliff_factor - 1);
        if (task->call.through)
            task->parts += targets_commit(
                model, id, settings->commit_ms + settings->fault.sync_per_write * settings->sync_commit_ms);
    }
    task->parts += targets_add(model, &transfer);
    call_part_done(model, id);
}

/* Continues a call when its bytes have left the cache. */
static void after_flush(struct pfs *model, struct task *task, int32_t id)
{
    const struct pfs_settings *settings = &model->settings;
    task->state = TASK_RUNNING;
    if (task->call.operation == PFS_SYNC) {
        task->parts +=
            targets_commit(model, id, settings->commit_ms + settings->fault.sync_per_write * settings->sync_commit_ms);
        call_part_done(model, id);
        return;
    }
    if (settings->fault.close_cost > 0)
        task->parts += targets_commit(model, id, settings->fault.close_cost * settings->close_commit_ms);
    metadata_ask(model, id);
}

void call_begin(struct pfs *model, int32_t id)
{
    struct task *task = task_at(model, id);
    task->number++;
    task->parts = 1;
    task->state = TASK_RUNNING;
    task->began_ns = task->earliest_ns = model->now_ns;
    switch (task->call.operation) {
    case PFS_READ:
    case PFS_WRITE:
        begin_data(model, task, id);
        break;
    case PFS_OPEN:
    case PFS_CREATE:
        streams_open(model, id);
        metadata_ask(model, id);
        break;
    case PFS_META:
        metadata_ask(model, id);
        break;
    case PFS_CLOSE:
    case PFS_SYNC:
        if (task->call.operation == PFS_CLOSE)
            streams_close(model, id);
        if (task->dirty_bytes > 0 && (task->call.operation == PFS_SYNC || model->settings.close_flushes > 0))
            task->state = TASK_FLUSHING;
        else
            after_flush(model, task, id);
        break;
    default:
        call_part_done(model, id);
    }
}

void call_drained(struct pfs *model, int32_t id)
{
    struct task *task = task_at(model, id);
    if (task->state == TASK_FLUSHING)
        after_flush(model, task, id);
}

static double stretch_of(const struct pfs *model, const struct task *task)
{
    const struct pfs_settings *settings = &model->settings;
    double factor = task->stretch;
    if (task->node == model->straggler_node)
        factor *= 1 + settings->fault.straggler_node * (settings->straggler_node_factor - 1);
    return factor;
}

void call_part_done(struct pfs *model, int32_t id)
{
    struct task *task = task_at(model, id);
    if (--task->parts > 0)
        return;
    if (moves_data(task)) {
        if (task->call.operation == PFS_READ)
            readahead_has_read(model, id);
        nodes_leave(model, id);
    }
    int64_t end_ns = task->earliest_ns > model->now_ns ? task->earliest_ns : model->now_ns;
    double stretch = task->call.operation == PFS_SEEK ? 1 : stretch_of(model, task);
    end_ns += whole((double)(end_ns - task->began_ns) * (stretch - 1));
    if (end_ns == model->now_ns || !sharing_at(model, end_ns, PART_DELAY, id))
        call_end(model, id);
}

void call_end(struct pfs *model, int32_t id)
{
    struct task *task = task_at(model, id);
    joined_end(model, id);
    task->state = TASK_DONE;
    task->done_ns = model->now_ns;
    task->next = NOBODY;
    task->previous = model->last_done;
    if (model->last_done == NOBODY)
        model->first_done = id;
    else
        task_at(model, model->last_done)->next = id;
    model->last_done = id;
}

void call_take(struct pfs *model, int32_t id)
{
    struct task *task = task_at(model, id);
    if (task->previous == NOBODY)
        model->first_done = task->next;
    else
        task_at(model, task->previous)->next = task->next;
    if (task->next == NOBODY)
        model->last_done = task->previous;
    else
        task_at(model, task->next)->previous = task->previous;
    task->state = TASK_IDLE;
}

void call_give_up(struct pfs *model, int32_t id)
{
    struct task *task = task_at(model, id);
    switch (task->state) {
    case TASK_DONE:
        call_take(model, id);
        return;
    case TASK_QUEUED:
        metadata_give_up(model, id);
        sharing_give_up(model, id); /* commits of a close */
        break;
    case TASK_WAITING:
    case TASK_RUNNING:
        sharing_give_up(model, id);
        nodes_leave(model, id);
        joined_end(model, id);
        break;
    default:
        break;
    }
    task->state = TASK_IDLE;
}
