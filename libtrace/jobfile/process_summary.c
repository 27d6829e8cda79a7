#include "process_summary.h"

#include "collector_state.h"

#include <core/lock.h>
#include <files/paths.h>

#include <string.h>

static struct ensio_collector *const state = &ensio_collector;

int ensio_collect_has_summary(void)
{
    return ensio_collector_has_summary();
}

const struct ensio_spool *ensio_collect_head(void)
{
    return &state->head;
}

/* The same as in ensembles/readers/native/clock.py. */
#define SLOWEST_NS_PER_TICK 1e3
#define FASTEST_NS_PER_TICK 0.05

double ensio_collect_rate(const struct ensio_spool *head, uint64_t *span_ns)
{
    const struct ensio_clock_reading *last = head->last_is_spare ? &head->spare : &head->last;
    const uint64_t ticks = last->ticks - head->first.ticks;
    const double rate = ticks ? (double)(last->monotonic_ns - head->first.monotonic_ns) / (double)ticks : 0;
    const int sound = rate >= FASTEST_NS_PER_TICK && rate <= SLOWEST_NS_PER_TICK;
    *span_ns = sound ? last->monotonic_ns - head->first.monotonic_ns : 0;
    return sound ? rate : 0;
}

struct ensio_clock_line ensio_collect_line(void)
{
    uint64_t span_ns;
    const double rate = state->head.clock == ENSIO_CLOCK_MONOTONIC ? 1 : ensio_collect_rate(&state->head, &span_ns);
    return (struct ensio_clock_line){
        .first_ticks = state->head.first.ticks,
        .first_unix_ns = (int64_t)state->head.first.realtime_ns,
        .ns_per_tick = rate > 0 ? rate : 1,
    };
}

static const struct ensio_job_window *window_of_summary(uint64_t number)
{
    return (const struct ensio_job_window *)(void *)state->summary.bytes + number;
}

/* Appends the contents of all windows of a kind, in their order. */
static int read_windows(uint16_t kind, uint64_t item_bytes, struct ensio_array *to)
{
    for (uint64_t i = 0; i < state->summary.used / sizeof(struct ensio_job_window); i++) {
        const struct ensio_job_window *window = window_of_summary(i);
        uint64_t count = (window->window.bytes - ENSIO_WINDOW_HEADER_BYTES) / item_bytes;
        if (window->window.kind != kind)
            continue;
        if (kind == ENSIO_WINDOW_CELLS && window->window.summarised < count)
            count = window->window.summarised;
        void *room = ensio_array_room(to, count * item_bytes);
        if (!room)
            return -ENOMEM;
        const int64_t got =
            ensio_collector_read(room, count * item_bytes, window->position + ENSIO_WINDOW_HEADER_BYTES);
        if (got != (int64_t)(count * item_bytes))
            return got < 0 ? (int)got : -EIO;
        to->used += count * item_bytes;
    }
    return 0;
}

/* Converts sums of powers of deviations from the first duration to the mean and central moments. */
static void set_moments(struct ensio_job_cell *to, const struct ensio_cell *cell)
{
    const double n = (double)cell->count, d = (double)(int64_t)(cell->time_ns - cell->count * cell->shift_ns) / n;
    const double s2 = cell->power2, s3 = cell->power3, s4 = cell->power4;
    to->mean_ns = (double)cell->shift_ns + d;
    to->m2 = s2 - n * d * d;
    to->m3 = s3 - 3 * d * s2 + 2 * n * d * d * d;
    to->m4 = s4 - 4 * d * s3 + 6 * d * d * s2 - 3 * n * d * d * d * d;
    to->m2 = to->m2 > 0 ? to->m2 : 0;
    to->m4 = to->m4 > 0 ? to->m4 : 0;
}

/* The number of this process's file in the merged summary; the last one is cached. */
struct known_file {
    uint32_t own, number;
};

static int file_number(struct ensio_merged *merged, struct known_file *known, uint32_t own, uint32_t *number)
{
    const char *path = ensio_file_path(own);
    if (own != known->own && path) {
        known->number = ensio_merged_path(merged, path, (uint32_t)strlen(path));
        known->own = own;
    }
    *number = path ? known->number : 0;
    return path && !known->number ? -ENOMEM : 0;
}

static int add_longest(struct ensio_merged *merged, struct known_file *known, const struct ensio_clock_line *line,
                       const struct ensio_cell *cell, struct ensio_job_cell *to)
{
    for (uint32_t i = 0; i < ENSIO_LARGEST && i < cell->count; i++) {
        const struct ensio_event *event = &cell->largest[i];
        struct ensio_job_longest call = {
            .start_ns = ensio_line_ns(line, event->start),
            .duration_ns = (uint64_t)ensio_nearest((double)event->duration * line->ns_per_tick),
            .offset = event->offset,
            .requested = event->requested,
            .moved = event->moved,
            .rank = state->head.rank > 0 ? (uint32_t)state->head.rank : 0,
            .thread = cell->threads[i],
            .depth = event->depth,
            .flags = event->flags,
        };
        const int failed = file_number(merged, known, event->file, &call.file);
        if (failed)
            return failed;
        ensio_merged_longest(to, &call);
    }
    return 0;
}

static int add_cell(struct ensio_merged *merged, struct known_file *known, const struct ensio_clock_line *line,
                    const struct ensio_cell *cell, const uint64_t *blocks)
{
    struct ensio_job_cell to = {
        .call = cell->call,
        .size_class = cell->size_class,
        .ordinal_class = cell->ordinal_class,
        .count = cell->count,
        .errors = cell->errors,
        .moved = cell->moved,
        .time_ns = cell->time_ns,
        .inner_ns = cell->inner_ns,
        .nested_count = cell->nested_count,
        .carried_moved = cell->carried_moved,
        .nested_ns = cell->nested_ns,
        .without_bin = cell->without_bin,
        .min_ns = cell->min_ns,
        .max_ns = cell->max_ns,
        .min_requested = cell->min_requested,
        .max_requested = cell->max_requested,
        .first_start_ns = ensio_line_ns(line, cell->first_start),
        .last_end_ns = ensio_line_ns(line, cell->last_end),
    };
    set_moments(&to, cell);
    for (uint32_t i = 0; i < ENSIO_OCTAVES; i++)
        to.blocks[i] = cell->blocks[i];
    const int failed = add_longest(merged, known, line, cell, &to);
    if (failed)
        return failed;
    return ensio_merged_add(merged, &to, blocks) == 0 ? 0 : -ENOMEM;
}

static struct ensio_job_call *row_of(uint16_t call)
{
    struct ensio_job_call *rows = (struct ensio_job_call *)(void *)state->calls.bytes;
    const uint64_t count = state->calls.used / sizeof *rows;
    for (uint64_t i = 0; i < count; i++)
        if (rows[i].call == call)
            return &rows[i];
    struct ensio_job_call *made = ensio_array_room(&state->calls, sizeof *made);
    if (!made)
        return NULL;
    *made = (struct ensio_job_call){.call = call};
    state->calls.used += sizeof *made;
    return made;
}

static int add_to_row(const struct ensio_cell *cell)
{
    struct ensio_job_call *row = row_of(cell->call);
    if (!row)
        return -ENOMEM;
    row->count += cell->count;
    row->errors += cell->errors;
    row->moved += cell->moved;
    row->time_ns += cell->time_ns;
    row->inner_ns += cell->inner_ns;
    if (cell->max_ns > row->max_ns)
        row->max_ns = cell->max_ns;
    return 0;
}

struct contents {
    struct ensio_array cells, blocks;
};

static int64_t read_summary(void *given)
{
    struct contents *read = given;
    const int failed = read_windows(ENSIO_WINDOW_CELLS, sizeof(struct ensio_cell), &read->cells);
    return failed ? failed : read_windows(ENSIO_WINDOW_BINS, ENSIO_BLOCK_BINS * sizeof(uint64_t), &read->blocks);
}

int ensio_collect_summary(struct ensio_merged *merged, const struct ensio_clock_line *line)
{
    struct contents read = {0};
    struct known_file known = {0};
    struct ensio_held held = ensio_lock();
    int failed = (int)ensio_collector_read_by(read_summary, &read);
    ensio_unlock(held);
    struct ensio_array cells = read.cells, blocks = read.blocks;
    for (uint64_t i = 0; i < cells.used / sizeof(struct ensio_cell) && !failed; i++) {
        const struct ensio_cell *cell = (const struct ensio_cell *)(void *)cells.bytes + i;
        if (!cell->call || !cell->count)
            continue;
        failed = add_cell(merged, &known, line, cell, (const uint64_t *)(void *)blocks.bytes);
        if (!failed)
            failed = add_to_row(cell);
    }
    ensio_array_free(&cells);
    ensio_array_free(&blocks);
    if (!failed && ensio_merged_compact(merged) != 0)
        failed = -ENOMEM;
    merged->processes = 1;
    return failed;
}

const uint8_t *ensio_collect_code(const struct ensio_merged *merged, uint32_t *length, uint32_t *coded)
{
    struct ensio_array packed = {0};
    uint8_t *to = NULL;
    if (ensio_merged_pack(merged, &packed) == 0) {
        const uint64_t room = packed.used + packed.used / 4 + 64;
        to = ensio_array_room(&state->record, room);
        *length = (uint32_t)packed.used;
        *coded = to ? ensio_encode_text(&state->work->encoder, packed.bytes, 0, *length, to, (uint32_t)room) : 0;
        to = to && *coded ? to : NULL;
    }
    ensio_array_free(&packed);
    return to;
}
