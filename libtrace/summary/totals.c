#include "totals.h"

#include "cells.h"

#include <calls/calls.h>
#include <files/paths.h>
#include <spool/spool.h>
#include <time/clock.h>

#include <string.h>

struct pass {
    struct ensio_totals *totals;
    double ns_per_tick;
    struct ensio_event slowest;
};

static uint64_t to_ns(const struct pass *pass, uint64_t ticks)
{
    return (uint64_t)((double)ticks * pass->ns_per_tick + 0.5);
}

static void add_cell(const struct ensio_cell *cell, void *state)
{
    struct pass *pass = state;
    struct ensio_sums *sum = &pass->totals->sum;
    const uint8_t op = cell->call < ENSIO_CALLS ? ensio_call_ops[cell->call] : ENSIO_OP_NONE;
    if (op == ENSIO_OP_NONE || !cell->count)
        return;
    const uint16_t index = ensio_call_indices[cell->call];
    const int moves = op == ENSIO_OP_READ || op == ENSIO_OP_WRITE;
    sum->calls[index].count += cell->count;
    sum->calls[index].bytes += moves ? cell->moved : 0;
    sum->calls[index].time_ns += cell->time_ns;
    sum->calls[index].errors += cell->errors;
    const int is_io = !ensio_call_waits_for_tasks[cell->call];
    if (is_io) {
        sum->io_tasks = 1;
        sum->io_ns += cell->time_ns - cell->inner_ns;
    }
    if (moves)
        *(op == ENSIO_OP_READ ? &sum->bytes_read : &sum->bytes_written) += cell->moved - cell->carried_moved;
    if (moves || op == ENSIO_OP_SYNC) /* what a write leaves in memory, a sync writes */
        *(op == ENSIO_OP_READ ? &pass->totals->most.read_ns : &pass->totals->most.write_ns) +=
            cell->time_ns - (ENSIO_IS_POSIX(index) ? 0 : cell->inner_ns);
    if (cell->max_ns > pass->totals->most.call_ns[index])
        pass->totals->most.call_ns[index] = cell->max_ns;
    for (int i = 0; i < ENSIO_LARGEST && is_io; i++)
        if (cell->largest[i].call && cell->largest[i].duration > pass->slowest.duration)
            pass->slowest = cell->largest[i];
}

static void note_slowest(struct pass *pass, const struct ensio_clock_reading *first)
{
    struct ensio_slowest *slowest = &pass->totals->slowest;
    const struct ensio_event *event = &pass->slowest;
    const char *path = ensio_file_path(event->file);
    if (!event->call)
        return;
    slowest->duration_ns = to_ns(pass, event->duration);
    slowest->start_unix_ns = first->realtime_ns + to_ns(pass, event->start - first->ticks);
    slowest->rank = ensio_settings.rank > 0 ? (uint32_t)ensio_settings.rank : 0;
    slowest->call = event->call;
    strncpy(slowest->file, path ? path : "", sizeof slowest->file - 1);
}

int ensio_totals(struct ensio_totals *totals)
{
    struct pass pass = {.totals = totals, .ns_per_tick = 1};
    memset(totals, 0, sizeof *totals);
    if (!ensio_spool)
        return -1;
    const struct ensio_clock_reading first = ensio_spool->first, now = ensio_clock_read();
    if (now.ticks > first.ticks && ensio_clock_kind == ENSIO_CLOCK_TSC)
        pass.ns_per_tick = (double)(now.monotonic_ns - first.monotonic_ns) / (double)(now.ticks - first.ticks);
    ensio_cells_each(add_cell, &pass);
    totals->begin_unix_ns = first.realtime_ns;
    totals->sum.tasks = 1;
    totals->most.wall_ns = now.monotonic_ns - first.monotonic_ns;
    totals->sum.threads = ensio_spool->threads ? ensio_spool->threads : 1;
    totals->sum.io_ns /= totals->sum.threads;
    totals->most.io_ns = totals->sum.io_ns;
    totals->sum.dropped = ensio_spool->dropped_events;
    totals->sum.flight_ns =
        to_ns(&pass, ensio_flights->read.flight + ensio_flights->write.flight + ensio_flights->other.flight);
    totals->sum.hidden_ns =
        to_ns(&pass, ensio_flights->read.hidden + ensio_flights->write.hidden + ensio_flights->other.hidden);
    note_slowest(&pass, &first);
    return 0;
}
