/* positions.c: where in its file an operation is, where no attribute says it: at the position of its handle, which moves
 * with what is read and written. That is only known where the handle was made in the same location, and no other location
 * uses it: those run side by side, and locations are read one by one. */
#include "reading.h"

#include <stdlib.h>
#include <string.h>

/* By handle; a number below 0: not known. Duplicates have one position. */
static struct handle_state {
    uint32_t seen_in; /* 1 + index of the location that uses it; ENSIO_UNDEFINED_INDEX: several do */
    uint32_t known_in; /* 1 + index of the location in which its position is known */
    uint32_t position; /* place in the table of positions */
} *states;
static size_t state_room;
static int64_t *positions;
static uint32_t position_count, position_room, here = 1;

#define MOST_PASSES 64
static struct pair {
    uint32_t old, new;
} *pairs;
static size_t pair_count, pair_room;

static struct handle_state *state_of(uint32_t handle)
{
    if (!ensio_file_of_handle(handle).known)
        return NULL; /* so that the table is no longer than the definitions */
    if (handle >= state_room) {
        size_t room = state_room ? state_room : 256;
        while (room <= handle)
            room *= 2;
        states = ensio_more(states, room * sizeof *states);
        memset(states + state_room, 0, (room - state_room) * sizeof *states);
        state_room = room;
    }
    return states + handle;
}

static void seen(const uint32_t *index, uint32_t handle)
{
    struct handle_state *state = state_of(handle);
    if (state && state->seen_in != *index + 1)
        state->seen_in = state->seen_in ? ENSIO_UNDEFINED_INDEX : *index + 1;
}

static OTF2_CallbackCode on_operation(OTF2_LocationRef location, OTF2_TimeStamp time, uint64_t at, void *user, OTF2_AttributeList *list,
                                      OTF2_IoHandleRef handle, OTF2_IoOperationMode mode, OTF2_IoOperationFlag flags, uint64_t bytes,
                                      uint64_t id)
{
    (void)location, (void)time, (void)at, (void)list, (void)mode, (void)flags, (void)bytes, (void)id;
    seen(user, handle);
    return OTF2_CALLBACK_SUCCESS;
}

static OTF2_CallbackCode on_create(OTF2_LocationRef location, OTF2_TimeStamp time, uint64_t at, void *user, OTF2_AttributeList *list,
                                   OTF2_IoHandleRef handle, OTF2_IoAccessMode mode, OTF2_IoCreationFlag creation,
                                   OTF2_IoStatusFlag status)
{
    (void)location, (void)time, (void)at, (void)list, (void)mode, (void)creation, (void)status;
    seen(user, handle);
    return OTF2_CALLBACK_SUCCESS;
}

static OTF2_CallbackCode on_seek(OTF2_LocationRef location, OTF2_TimeStamp time, uint64_t at, void *user, OTF2_AttributeList *list,
                                 OTF2_IoHandleRef handle, int64_t request, OTF2_IoSeekOption whence, uint64_t result)
{
    (void)location, (void)time, (void)at, (void)list, (void)request, (void)whence, (void)result;
    seen(user, handle);
    return OTF2_CALLBACK_SUCCESS;
}

static OTF2_CallbackCode on_duplicate(OTF2_LocationRef location, OTF2_TimeStamp time, uint64_t at, void *user, OTF2_AttributeList *list,
                                      OTF2_IoHandleRef old, OTF2_IoHandleRef new, OTF2_IoStatusFlag status)
{
    (void)location, (void)time, (void)at, (void)list, (void)status;
    seen(user, old);
    seen(user, new);
    if (pair_count == pair_room) {
        pair_room = pair_room ? 2 * pair_room : 64;
        pairs = ensio_more(pairs, pair_room * sizeof *pairs);
    }
    pairs[pair_count++] = (struct pair){old, new};
    return OTF2_CALLBACK_SUCCESS;
}

static bool make_alike(const struct pair *pair)
{
    state_of(pair->old); /* which may move the table */
    struct handle_state *new = state_of(pair->new), *old = state_of(pair->old);
    if (!old || !new || old->seen_in == new->seen_in)
        return false;
    old->seen_in = new->seen_in = ENSIO_UNDEFINED_INDEX;
    return true;
}

/* Duplicates have one position: what other locations do with the one moves the other. */
void ensio_sharing_known(void)
{
    bool changed = true;
    for (unsigned pass = 0; changed && pass < MOST_PASSES; pass++) {
        changed = false;
        for (size_t i = 0; i < pair_count; i++)
            changed |= make_alike(pairs + i);
    }
    for (size_t i = 0; changed && i < state_room; i++) /* chains that no program makes */
        states[i].seen_in = ENSIO_UNDEFINED_INDEX;
    free(pairs);
}

/* For a first look at locations that may share handles: which do they use. */
OTF2_EvtReaderCallbacks *ensio_sharing_callbacks(void)
{
    OTF2_EvtReaderCallbacks *callbacks = OTF2_EvtReaderCallbacks_New();
    if (!callbacks)
        ensio_fail("there is not enough memory");
    OTF2_EvtReaderCallbacks_SetIoOperationBeginCallback(callbacks, on_operation);
    OTF2_EvtReaderCallbacks_SetIoCreateHandleCallback(callbacks, on_create);
    OTF2_EvtReaderCallbacks_SetIoSeekCallback(callbacks, on_seek);
    OTF2_EvtReaderCallbacks_SetIoDuplicateHandleCallback(callbacks, on_duplicate);
    return callbacks;
}

static bool usable(uint32_t handle, struct handle_state **state)
{
    struct ensio_file_of of = ensio_file_of_handle(handle);
    *state = of.known && of.has_positions ? state_of(handle) : NULL;
    return *state && (*state)->seen_in != ENSIO_UNDEFINED_INDEX;
}

void ensio_position_set(uint32_t handle, int64_t position)
{
    struct handle_state *state;
    if (!usable(handle, &state))
        return;
    if (state->known_in != here) {
        if (position_count == position_room) {
            position_room = position_room ? 2 * position_room : 256;
            positions = ensio_more(positions, position_room * sizeof *positions);
        }
        state->known_in = here;
        state->position = position_count++;
    }
    positions[state->position] = position;
}

void ensio_position_shared(uint32_t of, uint32_t with)
{
    struct handle_state *old, *new;
    if (!usable(of, &old) || old->known_in != here)
        return;
    uint32_t position = old->position;
    if (usable(with, &new)) { /* which may have moved the table */
        new->known_in = here;
        new->position = position;
    }
}

int64_t ensio_position_of(uint32_t handle, int64_t moved)
{
    struct handle_state *state;
    if (!usable(handle, &state) || state->known_in != here || positions[state->position] < 0)
        return -1;
    int64_t *position = positions + state->position, before = *position;
    if (moved > 0 && __builtin_add_overflow(before, moved, position))
        *position = -1;
    return before;
}

/* Handles of another task have other numbers, or are those that all tasks of a communicator open, each with its position. */
void ensio_positions_of_next_location(void)
{
    here++;
    position_count = 0;
}
