#include "capacity.h"

#include "noise.h"

static int32_t drawn(const struct pfs *model, double wanted, double strength, enum noise_purpose purpose, int32_t count)
{
    if (strength <= 0)
        return NOBODY;
    if (wanted >= 0)
        return wanted < count ? (int32_t)wanted : NOBODY;
    return (int32_t)(noise_uniform(model, purpose, 0, 0, 0) * count);
}

struct pfs_places pfs_places(const struct pfs *model)
{
    const struct pfs_settings *settings = &model->settings;
    const struct pfs_faults *fault = &settings->fault;
    return (struct pfs_places){
        drawn(model, settings->slow_target, fault->slow_target, NOISE_SLOW_TARGET, model->targets),
        drawn(model, settings->straggler_node, fault->straggler_node, NOISE_STRAGGLER_NODE, model->limits.nodes),
        drawn(model, settings->straggler_task, fault->straggler_task, NOISE_STRAGGLER_TASK, model->limits.tasks)};
}

void capacity_create(struct pfs *model)
{
    const struct pfs_settings *settings = &model->settings;
    const struct pfs_places slow = pfs_places(model);
    model->slow_target = slow.slow_target;
    model->straggler_node = slow.straggler_node;
    if (slow.straggler_task != NOBODY)
        task_at(model, slow.straggler_task)->stretch =
            (float)(1 + settings->fault.straggler_task * (settings->straggler_task_factor - 1));
}

static int64_t period_ns(const struct pfs *model)
{
    return (int64_t)(model->settings.background_period_s * 1e9);
}

/* The load of other jobs comes in bursts, which last whole periods and are the same for all targets. */
static double left_by_others(const struct pfs *model, int64_t now_ns)
{
    const struct pfs_settings *settings = &model->settings;
    uint64_t period = (uint64_t)(now_ns / period_ns(model));
    if (noise_uniform(model, NOISE_BACKGROUND, period, 0, 0) >= settings->background_busy_fraction)
        return 1;
    double taken = settings->background_share;
    return 1 / (1 + settings->fault.background_load * taken / (1 - taken));
}

static int is_target(const struct pfs *model, int32_t queue)
{
    return queue >= target_queue(model, 0) && queue < target_queue(model, model->targets);
}

void capacity_set(struct pfs *model, int32_t id)
{
    const struct pfs_settings *settings = &model->settings;
    struct queue *queue = queue_at(model, id);
    double rate = 1;
    if (id == model->straggler_node)
        rate /= 1 + settings->fault.straggler_node * (settings->straggler_node_factor - 1);
    if (is_target(model, id)) {
        if (model->slow_target != NOBODY && id == target_queue(model, model->slow_target))
            rate /= 1 + settings->fault.slow_target * (settings->slow_target_factor - 1);
        if (settings->fault.background_load > 0)
            rate *= left_by_others(model, queue->updated_ns);
    }
    queue->rate = rate;
}

int64_t capacity_time_ns(const struct pfs *model, int32_t queue, int64_t from_ns, int64_t time_ns)
{
    if (model->settings.fault.background_load <= 0 || !is_target(model, queue))
        return time_ns;
    int64_t change_ns = (from_ns / period_ns(model) + 1) * period_ns(model);
    return change_ns < time_ns ? change_ns : time_ns;
}
