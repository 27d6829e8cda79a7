#include "profile.h"

#include "fail.h"
#include "ordinals.h"
#include "recorded.h"

#include <ensio/bins.h>
#include <ensio/event.h>
#include <stdlib.h>
#include <string.h>

#define MOST_CELLS (1 << 16)

/* Columns of ensembles.summaries.cells.CELL_DTYPES, in their order. */
struct cell {
    int64_t call;
    int64_t size_class;
    int64_t ordinal_class;
    int64_t count;
    int64_t errors;
    int64_t moved;
    int64_t outer_count;
    int64_t outer_moved;
    int64_t time_ns;
    int64_t inner_ns;
    int64_t outer_ns;
    int64_t without_bin;
    int64_t min_ns;
    uint64_t min_requested;
    int64_t start_ns;
    int64_t max_ns;
    uint64_t max_requested;
    int64_t end_ns;
    double mean_ns;
    double m2;
    double m3;
    double m4;
};

/* State of a cell besides its columns. */
struct beside {
    uint64_t *bins;
    struct output_event longest[ENSIO_LARGEST];
};

/* A task's calls of one function: columns of ensembles.summaries.ranktable, without its two keys. */
struct row {
    int64_t count;
    int64_t moved;
    int64_t time_ns;
    int64_t inner_ns;
    int64_t max_ns;
};

struct profile {
    int32_t tasks;
    int32_t cell_count;
    struct cell *cells;
    struct beside *beside;
    int32_t cell_of[RECORDED_COUNT][65][80]; /* by call, size class and ordinal class: number + 1 */
    struct row *rows[RECORDED_COUNT];        /* by rank; NULL: no task has called it */
    struct ordinals *ordinals;
};

struct profile *profile_begin(int32_t tasks)
{
    struct profile *profile = zeroed(1, sizeof *profile, "the summary");
    profile->tasks = tasks;
    profile->cells = zeroed(MOST_CELLS, sizeof *profile->cells, "the summary");
    profile->beside = zeroed(MOST_CELLS, sizeof *profile->beside, "the summary");
    profile->ordinals = ordinals_begin();
    return profile;
}

static int bit_length(uint64_t value)
{
    return value ? 64 - __builtin_clzll(value) : 0;
}

/* As ensembles.summaries.bins.ordinal_class. */
static int ordinal_class(uint64_t ordinal)
{
    return ordinal <= ENSIO_ORDINALS_APART
               ? (int)ordinal
               : ENSIO_ORDINALS_APART + 1 + bit_length(ordinal) - bit_length(ENSIO_ORDINALS_APART);
}

static struct cell *cell_of(struct profile *profile, const struct output_event *event, uint64_t ordinal)
{
    const int size = bit_length(event->requested), class = ordinal_class(ordinal);
    int32_t *number = &profile->cell_of[event->call][size][class];
    if (!*number) {
        if (profile->cell_count == MOST_CELLS)
            fail(EXIT_FAILURE, "the calls have more than %d kinds: use mode trace", MOST_CELLS);
        *number = ++profile->cell_count;
        profile->cells[*number - 1] = (struct cell){
            .call = event->call,
            .size_class = size,
            .ordinal_class = class,
            .min_ns = INT64_MAX,
            .min_requested = UINT64_MAX,
            .start_ns = INT64_MAX,
            .end_ns = INT64_MIN,
        };
        profile->beside[*number - 1].bins = zeroed(ENSIO_BIN_COUNT, sizeof(uint64_t), "the summary");
    }
    return &profile->cells[*number - 1];
}

/* Updates the central moments by one value: P. Pebay, SAND2008-6212, 2008. */
static void add_duration(struct cell *cell, double duration_ns)
{
    const double n = (double)cell->count, before = n - 1;
    const double delta = duration_ns - cell->mean_ns, share = delta / n, square = share * share;
    const double term = delta * share * before;
    cell->mean_ns += share;
    cell->m4 += term * square * (n * n - 3 * n + 3) + 6 * square * cell->m2 - 4 * share * cell->m3;
    cell->m3 += term * share * (n - 2) - 3 * share * cell->m2;
    cell->m2 += term;
}

/* The longest first; of equal ones the earlier, then that of the lower rank. */
static int is_longer(const struct output_event *a, const struct output_event *b)
{
    if (a->duration != b->duration)
        return a->duration > b->duration;
    return a->start != b->start ? a->start < b->start : a->rank < b->rank;
}

static void keep_longest(struct beside *beside, int64_t count, const struct output_event *event)
{
    int at = count - 1 < ENSIO_LARGEST ? (int)count - 1 : ENSIO_LARGEST;
    for (; at && is_longer(event, &beside->longest[at - 1]); at--)
        if (at < ENSIO_LARGEST)
            beside->longest[at] = beside->longest[at - 1];
    if (at < ENSIO_LARGEST)
        beside->longest[at] = *event;
}

static void add_to_rank(struct profile *profile, const struct output_event *event, int64_t inner_ns)
{
    struct row **rows = &profile->rows[event->call];
    if (!*rows)
        *rows = zeroed((size_t)profile->tasks, sizeof **rows, "what each task did");
    struct row *row = &(*rows)[event->rank];
    row->count++;
    row->moved += event->moved;
    row->time_ns += event->duration;
    row->inner_ns += inner_ns;
    if (event->duration > row->max_ns)
        row->max_ns = event->duration;
}

void profile_add(struct profile *profile, const struct output_event *event, int64_t inner_ns)
{
    const enum recorded_op op = recorded_kinds[event->call].op;
    const uint64_t ordinal = ordinal_next(profile->ordinals, event->rank, event->file, op);
    struct cell *cell = cell_of(profile, event, ordinal);
    struct beside *beside = &profile->beside[cell - profile->cells];
    const int is_carried = (op == OP_read && event->carried & ENSIO_CARRIED_READ) ||
                           (op == OP_write && event->carried & ENSIO_CARRIED_WRITE);
    cell->count++;
    cell->moved += event->moved;
    cell->outer_count += !event->depth;
    cell->outer_moved += is_carried ? 0 : event->moved;
    cell->time_ns += event->duration;
    cell->inner_ns += inner_ns;
    cell->outer_ns += event->depth ? 0 : event->duration;
    if (event->duration < cell->min_ns)
        cell->min_ns = event->duration;
    if (event->duration > cell->max_ns)
        cell->max_ns = event->duration;
    if (event->requested < cell->min_requested)
        cell->min_requested = event->requested;
    if (event->requested > cell->max_requested)
        cell->max_requested = event->requested;
    if (event->start < cell->start_ns)
        cell->start_ns = event->start;
    if (event->start + event->duration > cell->end_ns)
        cell->end_ns = event->start + event->duration;
    add_duration(cell, (double)event->duration);
    beside->bins[ensio_bin((uint64_t)event->duration)]++;
    keep_longest(beside, cell->count, event);
    add_to_rank(profile, event, inner_ns);
}

static void write_bins(const struct profile *profile, const struct output *output)
{
    FILE *file = output_open(output, "bins");
    for (int32_t cell = 0; cell < profile->cell_count; cell++)
        for (int64_t bin = 0; bin < ENSIO_BIN_COUNT; bin++)
            if (profile->beside[cell].bins[bin]) {
                const int64_t entry[3] = {cell, bin, (int64_t)profile->beside[cell].bins[bin]};
                fwrite(entry, sizeof entry, 1, file);
            }
    output_close(output, "bins", file);
}

static void write_longest(const struct profile *profile, const struct output *output)
{
    FILE *file = output_open(output, "longest");
    for (int32_t cell = 0; cell < profile->cell_count; cell++)
        for (int64_t i = 0; i < ENSIO_LARGEST && i < profile->cells[cell].count; i++) {
            struct output_event event = profile->beside[cell].longest[i];
            event.padding = (uint32_t)cell;
            fwrite(&event, sizeof event, 1, file);
        }
    output_close(output, "longest", file);
}

/* By rank and call: rank, call, count, errors, moved, time, time inside, longest. */
static void write_ranks(const struct profile *profile, const struct output *output)
{
    FILE *file = output_open(output, "ranks");
    for (int64_t rank = 0; rank < profile->tasks; rank++)
        for (int64_t call = 0; call < RECORDED_COUNT; call++) {
            const struct row *row = profile->rows[call] ? &profile->rows[call][rank] : NULL;
            if (!row || !row->count)
                continue;
            const int64_t entry[8] = {rank, call, row->count, 0, row->moved, row->time_ns, row->inner_ns, row->max_ns};
            fwrite(entry, sizeof entry, 1, file);
        }
    output_close(output, "ranks", file);
}

void profile_write(const struct profile *profile, const struct output *output)
{
    output_array(output, "cells", profile->cells, sizeof *profile->cells, (size_t)profile->cell_count);
    write_bins(profile, output);
    write_longest(profile, output);
    write_ranks(profile, output);
}
