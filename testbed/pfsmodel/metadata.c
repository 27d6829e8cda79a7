#include "metadata.h"

#include "calls.h"
#include "noise.h"
#include "sharing.h"

void metadata_create(struct pfs *model)
{
    model->first_metadata = model->last_metadata = NOBODY;
    model->metadata_threads = model->settings.fault.serialised_metadata > 0 ? 1 : (int32_t)model->settings.mds_threads;
}

static int64_t service_ns(const struct pfs *model, int32_t id)
{
    const struct pfs_settings *settings = &model->settings;
    const struct task *task = task_at(model, id);
    double ms = task->call.operation == PFS_CREATE ? settings->mds_create_ms : settings->mds_op_ms;
    ms += settings->fault.serialised_metadata * settings->serial_metadata_ms;
    ms += settings->fault.metadata_storm * settings->metadata_storm_ms;
    return whole(ms * 1e6 * noise_factor(model, settings->mds_noise, NOISE_METADATA, (uint64_t)id, task->number, 0));
}

static void start(struct pfs *model, int32_t id)
{
    struct task *task = task_at(model, id);
    task->state = TASK_RUNNING;
    if (sharing_at(model, model->now_ns + service_ns(model, id), PART_METADATA, id))
        model->metadata_busy++;
    else
        call_part_done(model, id);
}

void metadata_ask(struct pfs *model, int32_t id)
{
    if (model->metadata_busy < model->metadata_threads) {
        start(model, id);
        return;
    }
    task_at(model, id)->state = TASK_QUEUED;
    task_at(model, id)->next = NOBODY;
    if (model->first_metadata == NOBODY)
        model->first_metadata = id;
    else
        task_at(model, model->last_metadata)->next = id;
    model->last_metadata = id;
}

static int32_t next_request(struct pfs *model)
{
    int32_t id = model->first_metadata;
    model->first_metadata = task_at(model, id)->next;
    return id;
}

void metadata_done(struct pfs *model)
{
    model->metadata_busy--;
    if (model->first_metadata != NOBODY)
        start(model, next_request(model));
}

void metadata_give_up(struct pfs *model, int32_t id)
{
    if (task_at(model, id)->state != TASK_QUEUED)
        return;
    int32_t before = NOBODY;
    for (int32_t i = model->first_metadata; i != id; i = task_at(model, i)->next)
        before = i;
    int32_t next = task_at(model, id)->next;
    if (before == NOBODY)
        model->first_metadata = next;
    else
        task_at(model, before)->next = next;
    if (model->last_metadata == id)
        model->last_metadata = before;
}
