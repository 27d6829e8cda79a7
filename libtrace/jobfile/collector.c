#include "collector_state.h"

#include <core/lock.h>
#include <core/rawsys.h>
#include <core/recorder.h>
#include <spool/spool.h>
#include <summary/cells.h>
#include <summary/drain.h>
#include <threads/windows.h>

#include <string.h>

#define BLOB_BYTES (256U << 10) /* of a window that holds no events, coded at a time */
#define MOST_TEXT_BYTES (64U << 20)
#define MOST_KEPT_BYTES (256U << 20)

struct ensio_collection ensio_collection = {.spool_fd = -1};
static struct ensio_collection *const state = &ensio_collection;

static uint32_t piece_used;
static uint64_t first_unplaced; /* piece of data */
static uint64_t next_window, next_kept;

static int add_texts(uint64_t position, uint32_t bytes)
{
    void *to = state->texts.used + bytes <= MOST_TEXT_BYTES ? ensio_array_room(&state->texts, bytes) : NULL;
    if (!to || ensio_collection_read(to, bytes, position) != bytes)
        return -1;
    state->texts.used += bytes;
    return 0;
}

static int add_summary(const struct ensio_job_window *window)
{
    void *to = ensio_array_room(&state->summary, sizeof *window);
    if (!to)
        return -1;
    memcpy(to, window, sizeof *window);
    state->summary.used += sizeof *window;
    return 0;
}

/* Finds the windows of the spool, and takes its texts. */
static int find_windows(void)
{
    if (add_texts(ENSIO_SPOOL_TEXT_BYTES, state->head.text_bytes) != 0)
        return -1;
    for (uint64_t position = ENSIO_SPOOL_BYTES; position < state->head.allocated_bytes;) {
        struct ensio_job_window *found = ensio_array_room(&state->windows, sizeof *found);
        if (!found)
            return -1;
        *found = (struct ensio_job_window){.position = position};
        if (ensio_collection_read(&found->window, sizeof found->window, position) != sizeof found->window)
            return -1;
        if (found->window.magic != ENSIO_WINDOW_MAGIC) {
            position += ENSIO_WINDOW_UNIT_BYTES; /* the hole before a large window */
            continue;
        }
        position += found->window.bytes;
        if (ensio_collection_is_summary(found->window.kind)) {
            if (add_summary(found) != 0)
                return -1;
        } else if (found->window.kind != ENSIO_WINDOW_TEXT)
            state->windows.used += sizeof *found;
        else if (add_texts(found->position + ENSIO_WINDOW_HEADER_BYTES, found->window.text_bytes) != 0)
            return -1;
    }
    return 0;
}

/* Whether a scratch window holds events that are nowhere else yet. */
static int on_its_way(const struct ensio_job_window *window, const void *contents, uint64_t bytes)
{
    const struct ensio_event *events = contents;
    if (window->window.kind == ENSIO_WINDOW_SCRATCH)
        for (uint64_t i = window->window.summarised; i < bytes / sizeof *events; i++)
            if (events[i].call)
                return 1;
    return 0;
}

/* What other threads go on writing to is copied while none of them can. */
static int keep_contents(void)
{
    for (uint64_t i = 0; i < ensio_collection_windows(); i++) {
        const struct ensio_job_window *window = ensio_collection_window(i);
        const int of_events = window->window.kind == ENSIO_WINDOW_EVENTS;
        const uint64_t bytes = of_events ? 0 : window->window.bytes - ENSIO_WINDOW_HEADER_BYTES;
        uint32_t *number = ensio_array_room(&state->contents, sizeof *number);
        void *to = state->kept.used + bytes <= MOST_KEPT_BYTES ? ensio_array_room(&state->kept, bytes) : NULL;
        if (!number || (bytes && !to) ||
            ensio_collection_read(to, bytes, window->position + ENSIO_WINDOW_HEADER_BYTES) != (int64_t)bytes ||
            on_its_way(window, to, bytes))
            return -1;
        *number = of_events ? 0 : ensio_collection_contents(window);
        state->contents.used += sizeof *number;
        /* What a scratch window holds is in the summary by now. */
        state->kept.used += window->window.kind == ENSIO_WINDOW_SCRATCH ? 0 : bytes;
    }
    state->text_bytes = state->texts.used;
    return 0;
}

static int64_t take_contents(void *unused)
{
    return find_windows() == 0 && keep_contents() == 0 ? 0 : -ENOMEM;
}

int ensio_collect_begin(void)
{
    struct ensio_held held = ensio_lock();
    int begun = -ENOENT;
    if (ensio_spool) {
        ensio_spool->excluded_calls += ensio_thread.excluded_calls;
        ensio_thread.excluded_calls = 0;
        /* All that was stored is in the summary then, and nothing is on its way into it. */
        ensio_window_fold(&ensio_thread, 0);
        ensio_fold_others(ensio_thread.fold);
        ensio_spool_touch();
        ensio_losses_store();
        state->head = *ensio_spool;
        if (ensio_collection_has_summary())
            ensio_cells_close();
        begun = (int)ensio_collection_read_by(take_contents, NULL);
    }
    ensio_unlock(held);
    if (begun != 0)
        return begun;
    /* To readers who find no spool any more, the process ended in order: it would have left its spool else. */
    state->head.state = ENSIO_STATE_ENDED;
    state->work = ensio_raw_memory(sizeof(struct ensio_work));
    return state->work ? 0 : -ENOMEM;
}

const uint8_t *ensio_collect_texts(uint32_t *length)
{
    *length = (uint32_t)state->texts.used;
    return state->texts.bytes;
}

static int add_data(uint32_t bytes, uint32_t count)
{
    struct ensio_job_data *added = ensio_array_room(&state->data, sizeof *added);
    if (!added)
        return -1;
    *added = (struct ensio_job_data){.position = piece_used, .bytes = bytes, .count = count};
    state->data.used += sizeof *added;
    piece_used += bytes;
    return 0;
}

/* How many of these are complete, one behind the other. */
static uint32_t whole_events(const struct ensio_event *events, uint32_t count)
{
    uint32_t whole = 0;
    while (whole < count && events[whole].call)
        whole++;
    return whole;
}

/* The next block of a window; 0 when there are no more. */
static int take_events(struct ensio_job_window *window)
{
    const uint64_t position = window->position + ENSIO_WINDOW_HEADER_BYTES + window->taken * sizeof(struct ensio_event);
    const uint64_t left = (window->position + window->window.bytes - position) / sizeof(struct ensio_event);
    uint32_t count = left < ENSIO_BLOCK_EVENTS ? (uint32_t)left : ENSIO_BLOCK_EVENTS;
    if (count > window->window.summarised - window->taken) /* what is not in the summary is left to the spool */
        count = window->window.summarised - window->taken;
    const int64_t got = ensio_collection_read(state->work->events, count * sizeof(struct ensio_event), position);
    if (got < 0)
        return -1;
    count = whole_events(state->work->events, (uint32_t)((uint64_t)got / sizeof(struct ensio_event)));
    if (!count)
        return 0;
    /* What another thread completes while the kernel copies it may be copied without its first members. */
    const int64_t bytes = (int64_t)(count * sizeof(struct ensio_event));
    if (state->head.threads > 1 && ensio_collection_read(state->work->events, (uint64_t)bytes, position) != bytes)
        return -1;
    const uint32_t coded =
        ensio_encode_events(&state->work->encoder, state->work->events, &count, state->work->piece + piece_used);
    if (add_data(coded, count) != 0)
        return -1;
    window->taken += count;
    window->data++;
    return 1;
}

/* The next part of a window that the recorder knows nothing about here. */
static int take_bytes(struct ensio_job_window *window)
{
    const uint64_t all = window->window.kind == ENSIO_WINDOW_SCRATCH ? 0 : window->window.bytes - ENSIO_WINDOW_HEADER_BYTES;
    const uint64_t left = all - window->taken;
    const uint32_t bytes = left < BLOB_BYTES ? (uint32_t)left : BLOB_BYTES;
    if (!bytes)
        return 0;
    const uint32_t coded = ensio_encode_text(&state->work->encoder, state->kept.bytes + next_kept, 0, bytes,
                                             state->work->piece + piece_used, ENSIO_MOST_BLOCK_BYTES);
    if (!coded || add_data(coded, bytes) != 0)
        return -1;
    next_kept += bytes;
    window->taken += bytes;
    window->data++;
    return 1;
}

static int64_t take_piece(void *unused)
{
    while (next_window < ensio_collection_windows() && piece_used < ENSIO_PIECE_BYTES && !state->failed) {
        struct ensio_job_window *window = ensio_collection_window(next_window);
        const int taken = window->window.kind == ENSIO_WINDOW_EVENTS ? take_events(window) : take_bytes(window);
        state->failed |= taken < 0;
        next_window += taken == 0;
    }
    return 0;
}

const uint8_t *ensio_collect_piece(uint32_t *length)
{
    piece_used = 0;
    first_unplaced = state->data.used / sizeof(struct ensio_job_data);
    if (next_window < ensio_collection_windows()) {
        struct ensio_held held = ensio_lock();
        state->failed |= ensio_collection_read_by(take_piece, NULL) != 0;
        ensio_unlock(held);
    }
    *length = state->failed ? 0 : piece_used;
    return state->work->piece;
}

void ensio_collect_placed(uint64_t position)
{
    struct ensio_job_data *all = (struct ensio_job_data *)(void *)state->data.bytes;
    for (uint64_t i = first_unplaced; i < state->data.used / sizeof *all; i++)
        all[i].position += position;
}

/* What was taken of each window is kept, if the job file is whole. */
void ensio_collect_end(int written)
{
    struct ensio_held held = ensio_lock();
    if (state->work)
        ensio_raw_unmap(state->work, sizeof(struct ensio_work));
    state->work = NULL;
    ensio_array_free(&state->texts);
    ensio_array_free(&state->data);
    ensio_array_free(&state->record);
    ensio_array_free(&state->kept);
    ensio_array_free(&state->summary);
    ensio_array_free(&state->calls);
    if (!written) {
        ensio_array_free(&state->windows);
        ensio_array_free(&state->contents);
    }
    state->in_job_file = written ? ensio_spool_number : 0;
    ensio_unlock(held);
}
