#include "callers.h"

#include "waiters.h"

#include <core/rawsys.h>

#include <string.h>

#define LOOK_EVERY_NS INT64_C(200000000)

static int is_gone(const struct shim_slot *slot)
{
    return ENSIO_RAW(SYS_tgkill, slot->pid, slot->tid, 0) == -ESRCH;
}

static void free_slot(struct shim_state *state, int32_t i)
{
    struct shim_slot *slot = &state->slots[i];
    pfs_leave(shim_model(state), i);
    shim_waiter_remove(state, i);
    if (state->leader == i)
        state->leader = -1;
    state->counts.gone++;
    const uint64_t sequence = slot->sequence + 1;
    memset(slot, 0, sizeof *slot);
    slot->sequence = sequence;
}

void shim_look_for_gone(struct shim_state *state, int64_t now_ns)
{
    if (now_ns < state->checked_ns + LOOK_EVERY_NS)
        return;
    state->checked_ns = now_ns;
    for (int32_t i = 0; i < SHIM_CALLERS; i++)
        if (state->slots[i].pid && is_gone(&state->slots[i]))
            free_slot(state, i);
}

/* Whether the slot belongs to the caller, or can. */
static int is_free_for(struct shim_state *state, int32_t i, const struct shim_caller *caller)
{
    const struct shim_slot *slot = &state->slots[i];
    if (!slot->pid || (slot->pid == caller->pid && slot->tid == caller->tid))
        return 1;
    if (!is_gone(slot))
        return 0;
    free_slot(state, i);
    return 1;
}

/* The task number of a process without a rank: that of its threads with slots, or the lowest unused number. */
static int32_t ordinal_of(const struct shim_state *state, int32_t pid)
{
    uint8_t taken[SHIM_CALLERS / 8] = {0};
    for (int32_t i = SHIM_RANKS; i < SHIM_CALLERS; i++) {
        const struct shim_slot *slot = &state->slots[i];
        if (!slot->pid || slot->ordinal < 0)
            continue;
        if (slot->pid == pid)
            return slot->ordinal;
        taken[slot->ordinal / 8] |= (uint8_t)(1U << slot->ordinal % 8);
    }
    int32_t ordinal = 0;
    while (taken[ordinal / 8] >> ordinal % 8 & 1U)
        ordinal++;
    return ordinal;
}

static int32_t take(struct shim_state *state, int32_t i, const struct shim_caller *caller)
{
    struct shim_slot *slot = &state->slots[i];
    const int32_t ordinal = caller->rank < 0 ? ordinal_of(state, caller->pid) : -1;
    const int32_t task = caller->rank < 0 ? ordinal : caller->rank;
    slot->pid = caller->pid;
    slot->tid = caller->tid;
    slot->ordinal = ordinal;
    slot->node = task / state->tasks_per_node % state->limits.nodes;
    slot->word = SHIM_IDLE;
    if (i >= SHIM_RANKS)
        pfs_place(shim_model(state), i, slot->node);
    return i;
}

static int32_t find(struct shim_state *state, const struct shim_caller *caller)
{
    if (state->slots[caller->slot].pid == caller->pid && state->slots[caller->slot].tid == caller->tid)
        return caller->slot;
    if (caller->rank >= 0 && caller->rank < SHIM_RANKS && is_free_for(state, caller->rank, caller)) {
        const int32_t i = caller->rank;
        return state->slots[i].pid ? i : take(state, i, caller);
    }
    int32_t free = -1;
    for (int32_t i = SHIM_RANKS; i < SHIM_CALLERS; i++) {
        const struct shim_slot *slot = &state->slots[i];
        if (slot->pid == caller->pid && slot->tid == caller->tid)
            return i;
        if (free < 0 && !slot->pid)
            free = i;
    }
    for (int32_t i = SHIM_RANKS; free < 0 && i < SHIM_CALLERS; i++)
        if (is_free_for(state, i, caller))
            free = i;
    return free < 0 ? -1 : take(state, free, caller);
}

int32_t shim_slot_of(struct shim_state *state, struct shim_caller *caller)
{
    const int32_t slot = find(state, caller);
    caller->slot = slot < 0 ? 0 : slot;
    return slot;
}
