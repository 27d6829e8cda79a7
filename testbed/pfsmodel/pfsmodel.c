#include "pfsmodel.h"

#include "cache.h"
#include "calls.h"
#include "capacity.h"
#include "metadata.h"
#include "nodes.h"
#include "noise.h"
#include "sharing.h"
#include "state.h"
#include "streams.h"

#define ALIGNMENT 64
#define SPARE_PARTS 65536 /* for the work of cancelled calls */

static int32_t at_least(int32_t least, int32_t value)
{
    return value > least ? value : least;
}

static int32_t stripes_of(const struct pfs_settings *settings)
{
    double targets = settings->targets, stripes = settings->stripe_count;
    return (int32_t)(stripes >= 1 && stripes < targets ? stripes : targets);
}

/* A call occupies at most all targets of its file, the link and the memory, and so does a drain. All chunks are full
 * but the first and the last of a run; a queue has few runs. */
static int64_t chunk_limit(const struct pfs_settings *settings, const struct pfs_limits *limits)
{
    int64_t of_task = 2 * (int64_t)stripes_of(settings) + 5, nodes = at_least(1, limits->nodes);
    int64_t parts = of_task * at_least(1, limits->tasks) + nodes + SPARE_PARTS;
    int64_t chunks = parts / 4 + 8 * nodes + 64 * (int64_t)settings->targets;
    return chunks < parts ? chunks : parts;
}

/* Assigns each array its position. Returns the total size. */
static size_t lay_out(struct pfs *model, const struct pfs_settings *settings, const struct pfs_limits *limits)
{
    size_t end = sizeof *model;
    const size_t nodes = (size_t)at_least(1, limits->nodes), queues = 2 * nodes + (size_t)settings->targets + 1;
    const struct {
        size_t *at;
        size_t bytes;
    } arrays[] = {
        {&model->tasks_at, (size_t)at_least(1, limits->tasks) * sizeof(struct task)},
        {&model->nodes_at, nodes * sizeof(struct node)},
        {&model->files_at, (size_t)at_least(1, limits->files) * sizeof(struct file)},
        {&model->places_at, (size_t)at_least(1, limits->files) * 2 * sizeof(int32_t)},
        {&model->queues_at, queues * sizeof(struct queue)},
        {&model->queue_heap_at, (queues + QUEUE_HEAP_FIRST) * sizeof(struct queue_heap_entry)},
        {&model->queue_heap_places_at, queues * sizeof(int32_t)},
        {&model->target_bytes_at, (size_t)settings->targets * sizeof(double)},
        {&model->chunks_at, (size_t)(chunk_limit(settings, limits) + 4) * sizeof(struct chunk)},
    };
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
        *arrays[i].at = end = (end + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        end += arrays[i].bytes;
    }
    return (end + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

size_t pfs_bytes(const struct pfs_settings *settings, const struct pfs_limits *limits)
{
    struct pfs scratch;
    return lay_out(&scratch, settings, limits);
}

void pfs_create(struct pfs *model, const struct pfs_settings *settings, const struct pfs_limits *limits, uint64_t seed)
{
    lay_out(model, settings, limits);
    model->settings = *settings;
    model->limits = (struct pfs_limits){
        .tasks = at_least(1, limits->tasks), .nodes = at_least(1, limits->nodes), .files = at_least(1, limits->files)};
    model->seed = seed;
    model->targets = (int32_t)settings->targets;
    model->stripes = stripes_of(settings);
    model->stripe_bytes = (int64_t)(settings->stripe_MiB * 0x1p20);
    model->queue_count = 2 * model->limits.nodes + model->targets + 1;
    model->chunk_end = 1;
    model->chunks_left = (int32_t)chunk_limit(settings, limits);
    model->first_done = model->last_done = NOBODY;
    noise_create(model);
    metadata_create(model);
    for (int32_t i = 0; i < model->limits.tasks; i++) {
        struct task *task = task_at(model, i);
        task->stretch = 1;
        for (int j = 0; j < PFS_STREAMS; j++)
            task->streams[j].file = NOBODY;
        pfs_place(model, i, (int32_t)(i / (int64_t)settings->tasks_per_node) % model->limits.nodes);
    }
    for (int32_t i = 0; i < model->queue_count; i++)
        queue_at(model, i)->rate = 1;
    capacity_create(model);
}

void pfs_place(struct pfs *model, int32_t task, int32_t node)
{
    task_at(model, task)->node = node;
}

int32_t pfs_file(struct pfs *model, uint64_t key)
{
    /* The hash table is twice as long as the number of files, so that a free place is found soon. 0: free; else the
     * file's number plus one. */
    const uint64_t places = 2 * (uint64_t)model->limits.files;
    uint64_t place = noise_bits(model, NOISE_FIRST_TARGET, key, 1, 0) % places;
    for (;; place = (place + 1) % places) {
        int32_t number = *place_at(model, (int64_t)place);
        if (number == 0)
            break;
        if (file_at(model, number - 1)->key == key)
            return number - 1;
    }
    if (model->file_count == model->limits.files)
        return -1;
    *file_at(model, model->file_count) = (struct file){
        .key = key,
        .node = NOBODY,
        .first_target = (int32_t)(noise_uniform(model, NOISE_FIRST_TARGET, key, 0, 0) * model->targets),
    };
    *place_at(model, (int64_t)place) = ++model->file_count;
    return model->file_count - 1;
}

struct pfs_striping pfs_striping(const struct pfs *model, int32_t file)
{
    return (struct pfs_striping){
        .stripe_bytes = model->stripe_bytes,
        .count = (int32_t)model->stripes,
        .first_target = file == NOBODY ? 0 : file_at(model, file)->first_target,
        .targets = model->targets,
    };
}

static int64_t within(int64_t bytes)
{
    if (bytes < 0)
        return 0;
    return bytes < PFS_MOST ? bytes : PFS_MOST;
}

void pfs_begin(struct pfs *model, int64_t now_ns, const struct pfs_call *call)
{
    struct task *task = task_at(model, call->task);
    pfs_advance(model, now_ns);
    task->call = *call;
    task->call.offset = within(call->offset);
    task->call.bytes = within(call->bytes);
    call_begin(model, call->task);
    sharing_settle(model);
}

void pfs_wait(struct pfs *model, int32_t task, int64_t time_ns)
{
    task_at(model, task)->state = TASK_RUNNING;
    if (!sharing_at(model, time_ns, PART_DELAY, task))
        call_end(model, task);
    sharing_settle(model);
}

int64_t pfs_next_ns(const struct pfs *model)
{
    return sharing_next_ns(model);
}

static void part_done(struct pfs *model, const struct part *part)
{
    const int32_t owner = (int32_t)part->owner;
    switch ((enum part_kind)part->kind) {
    case PART_DRAIN:
        if (cache_part_done(model, owner))
            call_drained(model, owner);
        break;
    case PART_GATHER:
        nodes_gathered(model, owner);
        break;
    case PART_DELAY:
        call_end(model, owner);
        break;
    case PART_METADATA:
    case PART_LEFT:
        metadata_done(model);
        if (part->kind == PART_LEFT)
            break;
        /* fall through */
    case PART_CALL:
        call_part_done(model, owner);
        break;
    case PART_NOBODY:
        break;
    }
}

void pfs_advance(struct pfs *model, int64_t now_ns)
{
    while (sharing_next_ns(model) <= now_ns) {
        struct part part;
        if (sharing_step(model, &part))
            part_done(model, &part);
        sharing_settle(model);
    }
    if (now_ns > model->now_ns)
        model->now_ns = now_ns;
}

int32_t pfs_take(struct pfs *model, int64_t *done_ns)
{
    int32_t task = model->first_done;
    if (task == NOBODY)
        return -1;
    *done_ns = task_at(model, task)->done_ns;
    call_take(model, task);
    return task;
}

int pfs_take_of(struct pfs *model, int32_t task, int64_t *done_ns)
{
    if (task_at(model, task)->state != TASK_DONE)
        return 0;
    *done_ns = task_at(model, task)->done_ns;
    call_take(model, task);
    return 1;
}

void pfs_leave(struct pfs *model, int32_t task)
{
    call_give_up(model, task);
    streams_forget(model, task);
    sharing_settle(model);
}
