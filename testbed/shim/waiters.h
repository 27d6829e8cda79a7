/* waiters.h: the list of callers that sleep until somebody wakes them. Called with the lock held. */
#ifndef ENSIO_SHIM_WAITERS_H
#define ENSIO_SHIM_WAITERS_H

#include "state.h"

static inline void shim_fall_asleep(struct shim_state *state, int32_t i)
{
    struct shim_slot *slot = &state->slots[i];
    if (slot->sleeps)
        return;
    slot->sleeps = 1;
    slot->previous = -1;
    slot->next = state->first_asleep;
    if (slot->next >= 0)
        state->slots[slot->next].previous = i;
    state->first_asleep = i;
}

static inline void shim_get_up(struct shim_state *state, int32_t i)
{
    struct shim_slot *slot = &state->slots[i];
    if (!slot->sleeps)
        return;
    slot->sleeps = 0;
    if (slot->previous >= 0)
        state->slots[slot->previous].next = slot->next;
    else
        state->first_asleep = slot->next;
    if (slot->next >= 0)
        state->slots[slot->next].previous = slot->previous;
}

#endif
