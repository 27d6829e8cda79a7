#include "targets.h"

#include "noise.h"
#include "sharing.h"

/* Division of numbers that usually have few digits: a 64-bit division takes several times as long. */
static inline int64_t divided(int64_t number, int64_t by)
{
    if (((uint64_t)number | (uint64_t)by) >> 32 == 0)
        return (uint32_t)number / (uint32_t)by;
    return number / by;
}

static inline int64_t remainder_of(int64_t number, int64_t by)
{
    return number - divided(number, by) * by;
}

static int32_t target_of(const struct pfs *model, int32_t file, int64_t stripe)
{
    int32_t first = file == NOBODY ? 0 : file_at(model, file)->first_target;
    int64_t target = first + remainder_of(stripe, model->stripes);
    return (int32_t)(target < model->targets ? target : target - model->targets);
}

/* The noise of many requests is smaller than that of one. */
static double request_noise(const struct pfs *model, const struct transfer *transfer, int32_t target, int64_t requests)
{
    double sigma = model->settings.request_noise;
    if (sigma <= 0)
        return 1;
    if (requests > 1)
        sigma /= __builtin_sqrt((double)requests);
    return noise_factor(model, sigma, NOISE_TARGET, (uint64_t)transfer->task,
                        (uint64_t)transfer->number * 2 + (transfer->kind == PART_DRAIN), (uint64_t)target);
}

static int32_t add_part(struct pfs *model, const struct transfer *transfer, int32_t target, int64_t requests,
                        int64_t bytes, double extra_ns)
{
    double noise = request_noise(model, transfer, target, requests);
    double transfer_ns = (double)bytes * 1e3 / model->settings.target_MB_per_s;
    double work_ns = (transfer_ns + (double)requests * model->settings.request_ms * 1e6) * noise + extra_ns;
    *target_bytes_at(model, target) += (double)bytes;
    return sharing_add(model, target_queue(model, target), transfer->kind, transfer->task, work_ns * transfer->factor,
                       transfer->weight);
}

int32_t targets_add(struct pfs *model, const struct transfer *transfer)
{
    if (transfer->bytes <= 0)
        return 0;
    const int64_t size = model->stripe_bytes, end = transfer->offset + transfer->bytes;
    const int64_t first = transfer->offset / size, stripes = divided(end - 1 - first * size, size) + 1;
    const int64_t last = first + stripes - 1;
    const int64_t before = transfer->offset - first * size, after = (last + 1) * size - end;
    const int64_t used = stripes < model->stripes ? stripes : model->stripes;
    const int64_t last_at = remainder_of(stripes - 1, model->stripes);
    int32_t parts = 0;
    for (int64_t i = 0; i < used; i++) {
        int64_t requests = divided(stripes - 1 - i, model->stripes) + 1;
        int64_t bytes = requests * size;
        double extra_ns = 0;
        if (i == 0) {
            bytes -= before;
            extra_ns += transfer->first_extra_ns;
        }
        if (i == last_at) {
            bytes -= after;
            extra_ns += transfer->last_extra_ns;
        }
        parts += add_part(model, transfer, target_of(model, transfer->file, first + i), requests, bytes, extra_ns);
    }
    int32_t node = task_at(model, transfer->task)->node;
    double link_ns = (double)transfer->bytes * 1e3 / model->settings.link_MB_per_s;
    return parts + sharing_add(model, link_queue(node), transfer->kind, transfer->task, link_ns, transfer->weight);
}

int32_t targets_commit(struct pfs *model, int32_t id, double work_ms)
{
    const struct task *task = task_at(model, id);
    int32_t target = target_of(model, task->call.file, id);
    return sharing_add(model, target_queue(model, target), PART_CALL, id, work_ms * 1e6, 1);
}
