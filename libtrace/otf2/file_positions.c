/* file_positions.c: the offset of an operation without an attribute for it: the position of its handle, which reads and
 * writes advance. It is known only if the handle was created in the same location and no other location of its process
 * uses it, because locations run concurrently but are read one after the other. Processes are independent, even if they
 * use the same handle number. */
#include "reader.h"

#include <stdlib.h>
#include <string.h>

/* By handle; negative: unknown. Duplicates share one position. */
static struct handle_state {
    uint32_t seen_in;  /* 1 + index of the location that used it last, in the first pass */
    uint32_t asked_in; /* location for which is_shared is valid */
    uint32_t known_in; /* location in which its position is known */
    uint32_t position; /* index in the table of positions */
    bool is_shared;
} * states;
static size_t state_room;
static int64_t *positions;
static uint32_t position_count, position_room, here, group_here;

/* Pairs of a group of locations and a handle that it uses: first one for each location, later only those that several
 * locations use. */
struct use {
    uint32_t group, handle;
};
static struct use *uses;
static size_t use_count, use_room;
static bool all_are_shared;

#define MOST_PASSES 64
static struct pair {
    uint32_t group, old, new;
} * pairs;
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

static void add_use(struct use use)
{
    if (use_count == use_room) {
        use_room = use_room ? 2 * use_room : 256;
        uses = ensio_more(uses, use_room * sizeof *uses);
    }
    uses[use_count++] = use;
}

static int compare_uses(const void *a, const void *b)
{
    const struct use *one = a, *other = b;
    if (one->group != other->group)
        return one->group < other->group ? -1 : 1;
    return one->handle < other->handle ? -1 : one->handle > other->handle;
}

static bool is_shared(uint32_t group, uint32_t handle)
{
    struct use use = {group, handle};
    return all_are_shared || (use_count && bsearch(&use, uses, use_count, sizeof use, compare_uses));
}

static void seen(const uint32_t *index, uint32_t handle)
{
    struct handle_state *state = state_of(handle);
    if (state && state->seen_in != *index + 1) {
        state->seen_in = *index + 1;
        add_use((struct use){ensio_archive.places[*index].group, handle});
    }
}

static OTF2_CallbackCode on_operation(OTF2_LocationRef location, OTF2_TimeStamp time, uint64_t at, void *user,
                                      OTF2_AttributeList *list, OTF2_IoHandleRef handle, OTF2_IoOperationMode mode,
                                      OTF2_IoOperationFlag flags, uint64_t bytes, uint64_t id)
{
    (void)location, (void)time, (void)at, (void)list, (void)mode, (void)flags, (void)bytes, (void)id;
    seen(user, handle);
    return OTF2_CALLBACK_SUCCESS;
}

static OTF2_CallbackCode on_create(OTF2_LocationRef location, OTF2_TimeStamp time, uint64_t at, void *user,
                                   OTF2_AttributeList *list, OTF2_IoHandleRef handle, OTF2_IoAccessMode mode,
                                   OTF2_IoCreationFlag creation, OTF2_IoStatusFlag status)
{
    (void)location, (void)time, (void)at, (void)list, (void)mode, (void)creation, (void)status;
    seen(user, handle);
    return OTF2_CALLBACK_SUCCESS;
}

static OTF2_CallbackCode on_seek(OTF2_LocationRef location, OTF2_TimeStamp time, uint64_t at, void *user,
                                 OTF2_AttributeList *list, OTF2_IoHandleRef handle, int64_t request,
                                 OTF2_IoSeekOption whence, uint64_t result)
{
    (void)location, (void)time, (void)at, (void)list, (void)request, (void)whence, (void)result;
    seen(user, handle);
    return OTF2_CALLBACK_SUCCESS;
}

static OTF2_CallbackCode on_duplicate(OTF2_LocationRef location, OTF2_TimeStamp time, uint64_t at, void *user,
                                      OTF2_AttributeList *list, OTF2_IoHandleRef old, OTF2_IoHandleRef new,
                                      OTF2_IoStatusFlag status)
{
    (void)location, (void)time, (void)at, (void)list, (void)status;
    seen(user, old);
    seen(user, new);
    if (pair_count == pair_room) {
        pair_room = pair_room ? 2 * pair_room : 64;
        pairs = ensio_more(pairs, pair_room * sizeof *pairs);
    }
    if (state_of(old) && state_of(new))
        pairs[pair_count++] = (struct pair){ensio_archive.places[*(const uint32_t *)user].group, old, new};
    return OTF2_CALLBACK_SUCCESS;
}

/* Of all uses, keeps those that occur more than once, once each. */
static void keep_shared(void)
{
    size_t kept = 0;
    if (use_count)
        qsort(uses, use_count, sizeof *uses, compare_uses);
    for (size_t i = 1; i < use_count; i++)
        if (compare_uses(uses + i, uses + i - 1) == 0 && (!kept || compare_uses(uses + i, uses + kept - 1) != 0))
            uses[kept++] = uses[i];
    use_count = kept;
}

/* Duplicates share one position, so a handle is shared if one of its duplicates is. */
void ensio_sharing_known(void)
{
    bool changed = true;
    keep_shared();
    for (unsigned pass = 0; changed && pass < MOST_PASSES; pass++) {
        size_t before = use_count;
        struct use *more = NULL;
        size_t count = 0, room = 0;
        for (size_t i = 0; i < pair_count; i++) {
            const struct pair *pair = pairs + i;
            bool old = is_shared(pair->group, pair->old), new = is_shared(pair->group, pair->new);
            if (old == new)
                continue;
            if (count == room) {
                room = room ? 2 * room : 64;
                more = ensio_more(more, room * sizeof *more);
            }
            more[count++] = (struct use){pair->group, old ? pair->new : pair->old};
        }
        for (size_t i = 0; i < count; i++)
            add_use(more[i]);
        free(more);
        if (use_count)
            qsort(uses, use_count, sizeof *uses, compare_uses);
        changed = use_count != before;
    }
    all_are_shared = changed; /* chains that no program makes */
    free(pairs);
}

/* For a first pass over locations that may share handles: notes which handles they use. */
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
    if (!*state)
        return false;
    if ((*state)->asked_in != here) {
        (*state)->asked_in = here;
        (*state)->is_shared = is_shared(group_here, handle);
    }
    return !(*state)->is_shared;
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

void ensio_positions_in_group(uint32_t group)
{
    here++;
    position_count = 0;
    group_here = group;
}
