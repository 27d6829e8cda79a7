/* io_handles.c: OTF2 distinguishes open files by handles, which the columns do not have. For each file, paradigm and
 * rank there is a stack of open handles. An open call pushes a new one, or reuses a closed one; operations on the file
 * use the latest. */
#include "writer.h"

#include <stdlib.h>
#include <string.h>

struct slot {
    uint32_t rank, file;
    uint32_t open, idle; /* stacks of handles */
    uint8_t paradigm, used;
};

struct ensio_handle *ensio_handles;
uint32_t ensio_handle_count;
static uint32_t handle_room;

static struct slot *slots;
static size_t slot_count, slot_room;
static struct slot *latest;

static struct slot *place_of(struct slot *table, size_t room, uint32_t rank, uint32_t file, uint8_t paradigm)
{
    uint64_t hash = (((uint64_t)rank << 32 | file) + paradigm) * 0x9e3779b97f4a7c15ULL;
    for (size_t at = (hash >> 20) & (room - 1);; at = (at + 1) & (room - 1)) {
        struct slot *slot = table + at;
        if (!slot->used || (slot->rank == rank && slot->file == file && slot->paradigm == paradigm))
            return slot;
    }
}

static void grow(void)
{
    size_t room = slot_room ? 2 * slot_room : 256;
    struct slot *table = ensio_more(NULL, room * sizeof *table);
    memset(table, 0, room * sizeof *table);
    for (size_t i = 0; i < slot_room; i++)
        if (slots[i].used)
            *place_of(table, room, slots[i].rank, slots[i].file, slots[i].paradigm) = slots[i];
    free(slots);
    slots = table;
    slot_room = room;
}

static struct slot *slot_of(uint32_t rank, uint32_t file, uint8_t paradigm)
{
    if (latest && latest->rank == rank && latest->file == file && latest->paradigm == paradigm)
        return latest;
    if (2 * slot_count >= slot_room)
        grow();
    latest = place_of(slots, slot_room, rank, file, paradigm);
    if (!latest->used) {
        *latest = (struct slot){rank, file, ENSIO_NO_HANDLE, ENSIO_NO_HANDLE, paradigm, 1};
        slot_count++;
    }
    return latest;
}

static uint32_t new_handle(const struct slot *slot, bool pre_created)
{
    if (ensio_handle_count == handle_room) {
        handle_room = handle_room ? 2 * handle_room : 256;
        ensio_handles = ensio_more(ensio_handles, handle_room * sizeof *ensio_handles);
    }
    ensio_handles[ensio_handle_count] = (struct ensio_handle){slot->file, ENSIO_NO_HANDLE, slot->paradigm, pre_created};
    return ensio_handle_count++;
}

static uint32_t move(uint32_t *from, uint32_t *to)
{
    uint32_t handle = *from;
    *from = ensio_handles[handle].below;
    ensio_handles[handle].below = *to;
    *to = handle;
    return handle;
}

uint32_t ensio_handle_opened(uint32_t rank, uint32_t file, uint8_t paradigm)
{
    struct slot *slot = slot_of(rank, file, paradigm);
    if (slot->idle == ENSIO_NO_HANDLE)
        slot->idle = new_handle(slot, false);
    return move(&slot->idle, &slot->open);
}

/* The latest open handle. If none is open, the file was opened before the recording began, or by another thread in
 * another location; then the previous handle is used, or one that exists from the start. */
uint32_t ensio_handle_used(uint32_t rank, uint32_t file, uint8_t paradigm)
{
    struct slot *slot = slot_of(rank, file, paradigm);
    if (slot->open != ENSIO_NO_HANDLE)
        return slot->open;
    if (slot->idle == ENSIO_NO_HANDLE)
        slot->idle = new_handle(slot, true);
    return slot->idle;
}

uint32_t ensio_handle_closed(uint32_t rank, uint32_t file, uint8_t paradigm)
{
    struct slot *slot = slot_of(rank, file, paradigm);
    if (slot->open == ENSIO_NO_HANDLE)
        return ensio_handle_used(rank, file, paradigm);
    return move(&slot->open, &slot->idle);
}

void ensio_handles_of_next_ranks(void)
{
    if (slot_room)
        memset(slots, 0, slot_room * sizeof *slots);
    slot_count = 0;
    latest = NULL;
}
