#include "merged_summary.h"

static const struct ensio_text *entry_of(const struct ensio_joint *joint, uint32_t number)
{
    const uint32_t place = ((const uint32_t *)(const void *)joint->paths.bytes)[number - 1];
    return (const struct ensio_text *)(const void *)(joint->texts.bytes + place);
}

static uint32_t path_count(const struct ensio_joint *joint)
{
    return (uint32_t)(joint->paths.used / sizeof(uint32_t));
}

uint32_t ensio_joint_path(struct ensio_joint *joint, const char *path, uint32_t length)
{
    const uint32_t room = (length + 7U) / 8 * 8;
    struct ensio_text *entry = path ? ensio_array_room(&joint->texts, sizeof *entry + room) : NULL;
    uint32_t *place = entry ? ensio_array_room(&joint->paths, sizeof *place) : NULL;
    if (!place)
        return 0;
    *place = (uint32_t)joint->texts.used;
    *entry = (struct ensio_text){.kind = ENSIO_TEXT_FILE, .id = path_count(joint) + 1, .length = length};
    memset(entry + 1, 0, room);
    memcpy(entry + 1, path, length);
    joint->texts.used += sizeof *entry + room;
    joint->paths.used += sizeof *place;
    return path_count(joint);
}

static uint64_t hash_of(const struct ensio_text *entry)
{
    const uint8_t *bytes = (const uint8_t *)(entry + 1);
    uint64_t hash = 0xcbf29ce484222325U;
    for (uint32_t i = 0; i < entry->length; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3U;
    return hash ^ hash >> 29;
}

/* New numbers while paths move from one joint's texts to fresh ones. */
struct move {
    const struct ensio_joint *from;
    struct ensio_joint to;
    uint32_t *numbers; /* of each path in `from`: its number in `to`; 0: none yet */
    uint32_t *slots;   /* by the hash of a path: its number in `to` */
    uint32_t slot_count;
};

static int move_path(struct move *move, uint32_t number)
{
    if (move->numbers[number - 1])
        return 0;
    const struct ensio_text *entry = entry_of(move->from, number);
    uint64_t at = hash_of(entry) % move->slot_count;
    for (; move->slots[at]; at = (at + 1) % move->slot_count) {
        const struct ensio_text *there = entry_of(&move->to, move->slots[at]);
        if (there->length == entry->length && memcmp(there + 1, entry + 1, entry->length) == 0)
            break;
    }
    if (!move->slots[at])
        move->slots[at] = ensio_joint_path(&move->to, (const char *)(entry + 1), entry->length);
    move->numbers[number - 1] = move->slots[at];
    return move->slots[at] ? 0 : -1;
}

static int move_paths(struct move *move, struct ensio_joint *joint)
{
    struct ensio_job_cell *cells = (struct ensio_job_cell *)(void *)joint->cells.bytes;
    for (uint64_t i = 0; i < joint->cells.used / sizeof *cells; i++)
        for (uint32_t j = 0; j < cells[i].longest; j++) {
            uint32_t *file = &cells[i].largest[j].file;
            if (*file && move_path(move, *file) != 0)
                return -1; /* the joint is of no use any more: its caller gives it up */
            *file = *file ? move->numbers[*file - 1] : 0;
        }
    return 0;
}

int ensio_joint_tidy(struct ensio_joint *joint)
{
    struct move move = {.from = joint, .slot_count = 2 * path_count(joint)};
    const uint64_t bytes = 3ULL * path_count(joint) * sizeof(uint32_t);
    if (!bytes)
        return 0;
    move.numbers = ensio_raw_memory(bytes);
    if (!move.numbers)
        return -1;
    move.slots = move.numbers + path_count(joint);
    const int moved = move_paths(&move, joint);
    ensio_raw_unmap(move.numbers, bytes);
    struct ensio_array texts = joint->texts, paths = joint->paths;
    joint->texts = move.to.texts;
    joint->paths = move.to.paths;
    ensio_array_free(&texts);
    ensio_array_free(&paths);
    return moved;
}
