/* waiters.h: the list of callers that sleep until they are woken. The caller holds the lock. */
#ifndef ENSIO_SHIM_WAITERS_H
#define ENSIO_SHIM_WAITERS_H

#include "state.h"

static inline void shim_waiter_add(struct shim_state *state, int32_t i)
{
    struct shim_slot *slot = &state->slots[i];
    if (slot->waits)
        return;
    slot->waits = 1;
    slot->previous = -1;
    slot->next = state->first_waiter;
    if (slot->next >= 0)
        state->slots[slot->next].previous = i;
    state->first_waiter = i;
}

static inline void shim_waiter_remove(struct shim_state *state, int32_t i)
{
    struct shim_slot *slot = &state->slots[i];
    if (!slot->waits)
        return;
    slot->waits = 0;
    if (slot->previous >= 0)
        state->slots[slot->previous].next = slot->next;
    else
        state->first_waiter = slot->next;
    if (slot->next >= 0)
        state->slots[slot->next].previous = slot->previous;
}

#endif
