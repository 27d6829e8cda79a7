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

static struct ensio_fold *active, *unused;
static uint32_t active_count;

struct ensio_fold *ensio_fold_take(void)
{
    if (!unused) {
        struct ensio_fold *pool = ensio_raw_memory(POOL_BYTES);
        if (!pool)
            return NULL;
        for (size_t i = 0; i < POOL_BYTES / sizeof *pool; i++) {
            pool[i].next = unused;
            unused = &pool[i];
        }
    }
    struct ensio_fold *taken = unused;
    unused = taken->next;
    memset(taken, 0, sizeof *taken);
    taken->next = active;
    active = taken;
    active_count++;
    return taken;
}

uint32_t ensio_fold_count(void)
{
    return active_count;
}

void ensio_fold_give_back(struct ensio_fold *fold)
{
    for (struct ensio_fold **at = &active; *at; at = &(*at)->next) {
        if (*at == fold) {
            *at = fold->next;
            fold->next = unused;
            unused = fold;
            active_count--;
            return;
        }
    }
}

void ensio_folding_forget(void)
{
    while (active)
        ensio_fold_give_back(active);
    ensio_cells_forget();
    ensio_ordinals_forget();
}

void ensio_fold_others(const struct ensio_fold *own)
{
    for (struct ensio_fold *fold = active; fold; fold = fold->next)
        if (fold != own && fold->window)
            ensio_fold(fold, ensio_window_slots(fold->window), 1);
}

/* In mode tail the slow events are kept; in mode trace all should have been, and a scratch window is there for want of space. */
static void settle(struct ensio_fold *fold, const struct ensio_event *event, int slow)
{
    int lost = ensio_settings.mode == ENSIO_TRACE;
    if (slow > 0 && ensio_settings.mode == ENSIO_TAIL)
        lost = ensio_keep(fold, event) != 0;
    if (slow < 0)
        ensio_spool_lose();
    else if (lost)
        ensio_spool_drop();
}

/* A kill meets each event before or after it was added, or while it is: `folding` tells that. */
int ensio_fold(struct ensio_fold *fold, uint32_t end, int may_be_filled)
{
    struct ensio_window *window = fold->window;
    struct ensio_event *events = ensio_window_events(window);
    struct ensio_last last = ensio_no_last();
    int scratch = window->kind == ENSIO_WINDOW_SCRATCH;
    if (window->summarised >= end)
        return 1;
    if (ensio_cells_begin() != 0 && !scratch)
        return 0; /* readers add what is not added here */
    if (!window->rate || (scratch && window->summarised == 0))
        window->rate = ensio_rate();
    __atomic_store_n(&ensio_spool->folding, 1, __ATOMIC_RELEASE);
    uint64_t rate = window->rate;
    uint32_t at = window->summarised;
    const int plain = ensio_settings.mode == ENSIO_PROFILE || (ensio_settings.mode == ENSIO_TRACE && !scratch);
    for (; at < end; at++) {
        if (plain && last.place && (at = ensio_add_alike(fold, at, end, &last, rate)) == end)
            break;
        struct ensio_event *event = &events[at];
        if (__atomic_load_n(&event->call, __ATOMIC_ACQUIRE)) {
            int slow = ensio_add_event(fold, event, &last, rate);
            if (scratch)
                settle(fold, event, slow);
        } else if (may_be_filled) {
            break;
        }
        FENCE();
        *(volatile uint32_t *)&window->summarised = at + 1;
        if (scratch)
            event->call = 0; /* the slot is free */
    }
    __atomic_store_n(&ensio_spool->folding, 0, __ATOMIC_RELEASE);
    return at >= end;
}
