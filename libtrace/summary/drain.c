#include "drain.h"

#include "accumulate.h"
#include "cells.h"
#include "keep_slowest.h"
#include "ordinals.h"

#include <core/rawsys.h>
#include <core/recorder.h>
#include <core/settings.h>
#include <spool/spool.h>
#include <time/tick_rate.h>

#include <string.h>

#define POOL_BYTES 16384
#define FENCE() __atomic_signal_fence(__ATOMIC_SEQ_CST)

int ensio_has_summed_only;

static struct ensio_cursor *active, *unused;
static uint32_t active_count;

struct ensio_cursor *ensio_cursor_take(void)
{
    if (!unused) {
        struct ensio_cursor *pool = ensio_raw_memory(POOL_BYTES);
        if (!pool)
            return NULL;
        for (size_t i = 0; i < POOL_BYTES / sizeof *pool; i++) {
            pool[i].next = unused;
            unused = &pool[i];
        }
    }
    struct ensio_cursor *taken = unused;
    unused = taken->next;
    memset(taken, 0, sizeof *taken);
    taken->next = active;
    active = taken;
    active_count++;
    return taken;
}

struct ensio_cursor *ensio_cursor_of(uint32_t tid)
{
    struct ensio_cursor *cursor = active;
    while (cursor && (!cursor->window || cursor->window->tid != tid))
        cursor = cursor->next;
    return cursor;
}

uint32_t ensio_cursor_count(void)
{
    return active_count;
}

void ensio_cursor_release(struct ensio_cursor *cursor)
{
    for (struct ensio_cursor **at = &active; *at; at = &(*at)->next) {
        if (*at == cursor) {
            *at = cursor->next;
            cursor->next = unused;
            unused = cursor;
            active_count--;
            return;
        }
    }
}

void ensio_drain_forget(void)
{
    while (active)
        ensio_cursor_release(active);
    ensio_cells_forget();
    ensio_ordinals_forget();
}

void ensio_drain_others(const struct ensio_cursor *own)
{
    for (struct ensio_cursor *cursor = active; cursor; cursor = cursor->next)
        if (cursor != own && cursor->window)
            ensio_drain(cursor, ensio_window_slots(cursor->window), 1);
}

/* Mode tail keeps the slow events. Mode trace keeps all events, so a scratch window there means that space was
 * missing. */
static void settle(struct ensio_cursor *cursor, struct ensio_place *place, const struct ensio_event *event, int slow)
{
    const int summed_only = event->flags & ENSIO_SUMMED_ONLY;
    int lost = ensio_settings.mode == ENSIO_TRACE && !summed_only;
    if (slow > 0 && !summed_only && ensio_settings.mode == ENSIO_TAIL)
        lost = ensio_keep_slowest(cursor, place, event) != 0;
    if (slow < 0)
        ensio_spool_lose();
    else if (lost)
        ensio_spool_drop();
}

/* A kill may come before, after or during the addition of an event. `folding` marks the last case. */
int ensio_drain(struct ensio_cursor *cursor, uint32_t end, int may_be_filled)
{
    struct ensio_window *window = cursor->window;
    struct ensio_event *events = ensio_window_events(window);
    struct ensio_run_cache cache = ensio_empty_run_cache();
    int scratch = window->kind == ENSIO_WINDOW_SCRATCH;
    if (window->summarised >= end)
        return 1;
    if (ensio_cells_begin() != 0 && !scratch)
        return 0; /* readers add these events themselves */
    if (!window->rate || (scratch && window->summarised == 0))
        window->rate = ensio_tick_rate();
    __atomic_store_n(&ensio_spool->folding, 1, __ATOMIC_RELEASE);
    uint64_t rate = window->rate;
    uint32_t at = window->summarised;
    const int plain = ensio_settings.mode == ENSIO_PROFILE || (ensio_settings.mode == ENSIO_TRACE && !scratch);
    for (; at < end; at++) {
        if (plain && cache.place && (at = ensio_add_run(cursor, at, end, &cache, rate)) == end)
            break;
        struct ensio_event *event = &events[at];
        ensio_has_summed_only |= event->flags & ENSIO_SUMMED_ONLY;
        if (__atomic_load_n(&event->call, __ATOMIC_ACQUIRE)) {
            int slow = ensio_add_event(cursor, event, &cache, rate);
            if (scratch)
                settle(cursor, cache.place, event, slow);
        } else if (may_be_filled) {
            break;
        }
        FENCE();
        *(volatile uint32_t *)&window->summarised = at + 1;
        if (scratch || event->flags & ENSIO_SUMMED_ONLY)
            event->call = 0; /* the slot is free again */
    }
    ensio_cells_sum();
    __atomic_store_n(&ensio_spool->folding, 0, __ATOMIC_RELEASE);
    return at >= end;
}
