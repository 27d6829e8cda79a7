#include "merged_summary.h"

#define SLOTS 16384
#define SLOTS_BYTES (SLOTS * sizeof(uint16_t))
#define BLOCK_BYTES (ENSIO_BLOCK_BINS * sizeof(uint64_t))
#define MOST_BYTES (1U << 30) /* of one in one piece: counts of MPI are int */

int ensio_joint_begin(struct ensio_joint *joint)
{
    *joint = (struct ensio_joint){.slots = ensio_raw_memory(SLOTS_BYTES)};
    return joint->slots ? 0 : -1;
}

void ensio_joint_free(struct ensio_joint *joint)
{
    ensio_array_free(&joint->cells);
    ensio_array_free(&joint->blocks);
    ensio_array_free(&joint->texts);
    ensio_array_free(&joint->paths);
    if (joint->slots)
        ensio_raw_unmap(joint->slots, SLOTS_BYTES);
    joint->slots = NULL;
}

static struct ensio_job_cell *cell_at(const struct ensio_joint *joint, uint64_t number)
{
    return (struct ensio_job_cell *)(void *)joint->cells.bytes + number;
}

static uint64_t cell_count(const struct ensio_joint *joint)
{
    return joint->cells.used / sizeof(struct ensio_job_cell);
}

static uint64_t *block_at(const struct ensio_array *blocks, uint32_t number)
{
    return (uint64_t *)(void *)(blocks->bytes + (number - 1) * BLOCK_BYTES);
}

/* The classes that a cell has at a level. */
static void make_coarser(struct ensio_job_cell *cell, uint32_t level)
{
    if (level > 0)
        cell->ordinal_class = ENSIO_ALL_ORDINALS;
    if (level > 1)
        cell->size_class = ENSIO_ALL_SIZES;
}

static uint16_t *slot_for(const struct ensio_joint *joint, const struct ensio_job_cell *key)
{
    const uint32_t number = (uint32_t)key->call << 16 | (uint32_t)key->size_class << 8 | key->ordinal_class;
    uint32_t at = number * 0x9e3779b9U >> 18;
    for (;; at = (at + 1) % SLOTS) {
        const struct ensio_job_cell *there = joint->slots[at] ? cell_at(joint, joint->slots[at] - 1U) : NULL;
        if (!there || (there->call == key->call && there->size_class == key->size_class &&
                       there->ordinal_class == key->ordinal_class))
            return &joint->slots[at];
    }
}

/* Central sums about the common mean: P. Pebay, SAND2008-6212, 2008. */
static void add_moments(struct ensio_job_cell *to, const struct ensio_job_cell *more)
{
    const double a = (double)to->count, b = (double)more->count, n = a + b, delta = more->mean_ns - to->mean_ns;
    const double part = delta / n, square = delta * part;
    to->m4 += more->m4 + square * part * part * a * b * (a * a - a * b + b * b) +
              6 * part * part * (a * a * more->m2 + b * b * to->m2) + 4 * part * (a * more->m3 - b * to->m3);
    to->m3 += more->m3 + square * part * a * b * (a - b) + 3 * part * (a * more->m2 - b * to->m2);
    to->m2 += more->m2 + square * a * b;
    to->mean_ns += part * b;
}

static int comes_before(const struct ensio_job_longest *one, const struct ensio_job_longest *other)
{
    if (one->duration_ns != other->duration_ns)
        return one->duration_ns > other->duration_ns;
    if (one->start_ns != other->start_ns)
        return one->start_ns < other->start_ns;
    return one->rank != other->rank ? one->rank < other->rank : one->thread < other->thread;
}

void ensio_joint_longest(struct ensio_job_cell *to, const struct ensio_job_longest *call)
{
    uint32_t at = to->longest;
    while (at > 0 && comes_before(call, &to->largest[at - 1]))
        at--;
    if (at == ENSIO_LARGEST)
        return;
    if (to->longest < ENSIO_LARGEST)
        to->longest++;
    memmove(&to->largest[at + 1], &to->largest[at], (to->longest - 1 - at) * sizeof *call);
    to->largest[at] = *call;
}

static void add_sums(struct ensio_job_cell *to, const struct ensio_job_cell *more)
{
    add_moments(to, more);
    to->count += more->count;
    to->errors += more->errors;
    to->moved += more->moved;
    to->time_ns += more->time_ns;
    to->inner_ns += more->inner_ns;
    to->nested_count += more->nested_count;
    to->carried_moved += more->carried_moved;
    to->nested_ns += more->nested_ns;
    to->without_bin += more->without_bin;
#define LEAST(member) to->member = more->member < to->member ? more->member : to->member
#define MOST(member) to->member = more->member > to->member ? more->member : to->member
    LEAST(min_ns);
    MOST(max_ns);
    LEAST(min_requested);
    MOST(max_requested);
    LEAST(first_start_ns);
    MOST(last_end_ns);
    for (uint32_t i = 0; i < more->longest; i++)
        ensio_joint_longest(to, &more->largest[i]);
}

static int add_blocks(struct ensio_joint *joint, uint64_t number, const struct ensio_job_cell *more, const uint64_t *blocks)
{
    for (uint32_t octave = 0; octave < ENSIO_OCTAVES; octave++) {
        if (!more->blocks[octave])
            continue;
        uint32_t *mine = &cell_at(joint, number)->blocks[octave];
        if (!*mine) {
            void *made = ensio_array_room(&joint->blocks, BLOCK_BYTES);
            if (!made)
                return -1;
            memset(made, 0, BLOCK_BYTES);
            joint->blocks.used += BLOCK_BYTES;
            *mine = (uint32_t)(joint->blocks.used / BLOCK_BYTES);
        }
        uint64_t *to = block_at(&joint->blocks, *mine);
        const uint64_t *from = blocks + (uint64_t)(more->blocks[octave] - 1) * ENSIO_BLOCK_BINS;
        for (int i = 0; i < ENSIO_BLOCK_BINS; i++)
            to[i] += from[i];
    }
    return 0;
}

/* All cells anew, one class coarser. */
static int tell_less_apart(struct ensio_joint *joint)
{
    struct ensio_joint coarser;
    int failed = ensio_joint_begin(&coarser) != 0;
    coarser.level = joint->level + 1;
    for (uint64_t i = 0; i < cell_count(joint) && !failed; i++)
        failed = ensio_joint_add(&coarser, cell_at(joint, i), (const uint64_t *)(const void *)joint->blocks.bytes) != 0;
    if (!failed) {
        const struct ensio_joint finer = *joint;
        joint->cells = coarser.cells;
        joint->blocks = coarser.blocks;
        joint->slots = coarser.slots;
        joint->level = coarser.level;
        coarser.cells = finer.cells;
        coarser.blocks = finer.blocks;
        coarser.slots = finer.slots;
    }
    ensio_joint_free(&coarser);
    return failed ? -1 : 0;
}

int ensio_joint_add(struct ensio_joint *joint, const struct ensio_job_cell *cell, const uint64_t *blocks)
{
    struct ensio_job_cell key = {.call = cell->call, .size_class = cell->size_class, .ordinal_class = cell->ordinal_class};
    make_coarser(&key, joint->level);
    uint16_t *slot = slot_for(joint, &key);
    if (*slot) {
        add_sums(cell_at(joint, *slot - 1U), cell);
        return add_blocks(joint, *slot - 1U, cell, blocks);
    }
    if (cell_count(joint) >= ENSIO_JOINT_CELLS && joint->level < 2)
        return tell_less_apart(joint) == 0 ? ensio_joint_add(joint, cell, blocks) : -1;
    struct ensio_job_cell *made = cell_count(joint) < SLOTS / 2 ? ensio_array_room(&joint->cells, sizeof *made) : NULL;
    if (!made)
        return -1;
    *made = *cell;
    make_coarser(made, joint->level);
    memset(made->blocks, 0, sizeof made->blocks);
    joint->cells.used += sizeof *made;
    *slot = (uint16_t)cell_count(joint);
    return add_blocks(joint, *slot - 1U, cell, blocks);
}

int ensio_joint_merge(struct ensio_joint *joint, const uint8_t *packed, uint64_t length)
{
    struct ensio_job_summary head;
    if (length < sizeof head)
        return -1;
    memcpy(&head, packed, sizeof head);
    const uint64_t cells_bytes = head.cells * sizeof(struct ensio_job_cell), blocks_bytes = head.blocks * BLOCK_BYTES;
    if (length != sizeof head + cells_bytes + blocks_bytes + head.text_bytes)
        return -1;
    const uint8_t *at = packed + sizeof head + cells_bytes + blocks_bytes, *const end = packed + length;
    const uint64_t own_paths = joint->paths.used / sizeof(uint32_t);
    while (at < end) {
        const struct ensio_text *entry = (const struct ensio_text *)(const void *)at;
        if (!ensio_joint_path(joint, (const char *)(entry + 1), entry->length))
            return -1;
        at += sizeof *entry + (entry->length + 7U) / 8 * 8;
    }
    while (joint->level < head.level)
        if (tell_less_apart(joint) != 0)
            return -1;
    const struct ensio_job_cell *const cells = (const struct ensio_job_cell *)(const void *)(packed + sizeof head);
    for (uint32_t i = 0; i < head.cells; i++) {
        struct ensio_job_cell cell = cells[i];
        for (uint32_t j = 0; j < cell.longest; j++)
            cell.largest[j].file += cell.largest[j].file ? (uint32_t)own_paths : 0;
        if (ensio_joint_add(joint, &cell, (const uint64_t *)(const void *)(cells + head.cells)) != 0)
            return -1;
    }
    joint->processes += head.processes;
    return ensio_joint_tidy(joint);
}

static void append(struct ensio_array *to, const struct ensio_array *part)
{
    if (part->used)
        memcpy(to->bytes + to->used, part->bytes, part->used);
    to->used += part->used;
}

int ensio_joint_pack(const struct ensio_joint *joint, struct ensio_array *to)
{
    const struct ensio_job_summary head = {
        .processes = joint->processes,
        .cells = (uint32_t)cell_count(joint),
        .blocks = (uint32_t)(joint->blocks.used / BLOCK_BYTES),
        .text_bytes = (uint32_t)joint->texts.used,
        .level = joint->level,
    };
    const uint64_t length = sizeof head + joint->cells.used + joint->blocks.used + joint->texts.used;
    if (length > MOST_BYTES || !ensio_array_room(to, length))
        return -1;
    memcpy(to->bytes + to->used, &head, sizeof head);
    to->used += sizeof head;
    append(to, &joint->cells);
    append(to, &joint->blocks);
    append(to, &joint->texts);
    return 0;
}
