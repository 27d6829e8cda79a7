#include "readahead.h"

#include "streams.h"

#define PAGE_BYTES 4096.0
#define RECOGNISED 3 /* a stride is recognised at this occurrence */

/* Consecutive reads are fetched in windows that double in size. */
static struct read_plan sequential(const struct pfs *model, struct stream *stream, const struct pfs_call *call)
{
    const int64_t end = call->offset + call->bytes;
    const int64_t most = whole(model->settings.readahead_max_MiB * 0x1p20);
    stream->begin = call->offset;
    stream->end = end;
    stream->stride = 0;
    stream->matches = 1;
    if (end <= stream->ahead)
        return (struct read_plan){.offset = end};
    int64_t window = stream->window ? 2 * stream->window : whole(model->settings.readahead_KiB * 1024);
    stream->window = window < most ? window : most;
    int64_t from = stream->ahead > call->offset ? stream->ahead : call->offset;
    int64_t bytes = end - from > stream->window ? end - from : stream->window;
    stream->ahead = from + bytes;
    return (struct read_plan){.offset = from, .bytes = bytes};
}

/* A stride is recognised at its third occurrence; each later matching read opens a larger window. If written pages fill
 * the node's memory, the fault fetches the window page by page. */
static double single_pages(const struct pfs *model, const struct task *task, const struct stream *stream)
{
    const struct pfs_settings *settings = &model->settings;
    if (settings->fault.strided_readahead <= 0 || stream->matches <= RECOGNISED)
        return 0;
    double full_bytes = settings->full_pages_fraction * settings->page_cache_MiB * 0x1p20;
    if (node_at(model, task->node)->written_pages_bytes < full_bytes || full_bytes <= 0)
        return 0;
    double window_bytes = (stream->matches - RECOGNISED) * settings->stride_window_MiB * 0x1p20;
    double bytes = (double)task->call.bytes;
    return (window_bytes < bytes ? window_bytes : bytes) / PAGE_BYTES;
}

struct read_plan readahead_read(struct pfs *model, int32_t id)
{
    struct task *task = task_at(model, id);
    const struct pfs_call *call = &task->call;
    struct read_plan plan = {.offset = call->offset, .bytes = call->bytes};
    if (call->file == NOBODY)
        return plan;
    struct stream *stream = streams_of(task);
    if (stream->matches > 0 && call->offset == stream->end)
        return sequential(model, stream, call);
    int64_t stride = call->offset - stream->begin;
    if (stream->matches == 0)
        stream->matches = 1;
    else if (stream->matches > 1 && stride == stream->stride)
        stream->matches++;
    else
        stream->matches = 2;
    stream->stride = stride;
    stream->begin = call->offset;
    stream->end = stream->ahead = call->offset + call->bytes;
    stream->window = 0;
    if (stride > call->bytes)
        plan.pages = single_pages(model, task, stream);
    return plan;
}

void readahead_has_read(struct pfs *model, int32_t id)
{
    struct node *node = node_at(model, task_at(model, id)->node);
    node->written_pages_bytes -= (double)task_at(model, id)->call.bytes;
    if (node->written_pages_bytes < 0)
        node->written_pages_bytes = 0;
}

void readahead_has_written(struct pfs *model, int32_t id)
{
    struct node *node = node_at(model, task_at(model, id)->node);
    double most = model->settings.page_cache_MiB * 0x1p20;
    node->written_pages_bytes += (double)task_at(model, id)->call.bytes;
    if (node->written_pages_bytes > most)
        node->written_pages_bytes = most;
}
