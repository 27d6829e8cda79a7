#include "merged_summary.h"

#define SLOTS 16384
#define SLOTS_BYTES (SLOTS * sizeof(uint16_t))
#define BLOCK_BYTES (ENSIO_BLOCK_BINS * sizeof(uint64_t))
#define MOST_BYTES (1U << 30) /* limit of a packed summary: counts of MPI are int */

int ensio_merged_begin(struct ensio_merged *merged)
{
    *merged = (struct ensio_merged){.slots = ensio_raw_memory(SLOTS_BYTES)};
    return merged->slots ? 0 : -1;
}

void ensio_merged_free(struct ensio_merged *merged)
{
    ensio_array_free(&merged->cells);
    ensio_array_free(&merged->blocks);
    ensio_array_free(&merged->texts);
    ensio_array_free(&merged->paths);
    if (merged->slots)
        ensio_raw_unmap(merged->slots, SLOTS_BYTES);
    merged->slots = NULL;
}

static struct ensio_job_cell *cell_at(const struct ensio_merged *merged, uint64_t number)
{
    return (struct ensio_job_cell *)(void *)merged->cells.bytes + number;
}

static uint64_t cell_count(const struct ensio_merged *merged)
{
    return merged->cells.used / sizeof(struct ensio_job_cell);
}

static uint64_t *block_at(const struct ensio_array *blocks, uint32_t number)
{
    return (uint64_t *)(void *)(blocks->bytes + (number - 1) * BLOCK_BYTES);
}

/* Maps a cell's classes to those of a coarser level. */
static void make_coarser(struct ensio_job_cell *cell, uint32_t level)
{
    if (level > 0)
        cell->ordinal_class = ENSIO_ALL_ORDINALS;
    if (level > 1)
        cell->size_class = ENSIO_ALL_SIZES;
}

static uint16_t *slot_for(const struct ensio_merged *merged, const struct ensio_job_cell *key)
{
    const uint32_t number = (uint32_t)key->call << 16 | (uint32_t)key->size_class << 8 | key->ordinal_class;
    uint32_t at = number * 0x9e3779b9U >> 18;
    for (;; at = (at + 1) % SLOTS) {
        const struct ensio_job_cell *there = merged->slots[at] ? cell_at(merged, merged->slots[at] - 1U) : NULL;
        if (!there || (there->call == key->call && there->size_class == key->size_class &&
                       there->ordinal_class == key->ordinal_class))
            return &merged->slots[at];
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

void ensio_merged_longest(struct ensio_job_cell *to, const struct ensio_job_longest *call)
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
        ensio_merged_longest(to, &more->largest[i]);
}

static int add_blocks(struct ensio_merged *merged, uint64_t number, const struct ensio_job_cell *more,
                      const uint64_t *blocks)
{
    for (uint32_t octave = 0; octave < ENSIO_OCTAVES; octave++) {
        if (!more->blocks[octave])
            continue;
        uint32_t *mine = &cell_at(merged, number)->blocks[octave];
        if (!*mine) {
            void *made = ensio_array_room(&merged->blocks, BLOCK_BYTES);
            if (!made)
                return -1;
            memset(made, 0, BLOCK_BYTES);
            merged->blocks.used += BLOCK_BYTES;
            *mine = (uint32_t)(merged->blocks.used / BLOCK_BYTES);
        }
        uint64_t *to = block_at(&merged->blocks, *mine);
        const uint64_t *from = blocks + (uint64_t)(more->blocks[octave] - 1) * ENSIO_BLOCK_BINS;
        for (int i = 0; i < ENSIO_BLOCK_BINS; i++)
            to[i] += from[i];
    }
    return 0;
}

/* Rebuilds all cells one level coarser. */
static int tell_less_apart(struct ensio_merged *merged)
{
    struct ensio_merged coarser;
    int failed = ensio_merged_begin(&coarser) != 0;
    coarser.level = merged->level + 1;
    for (uint64_t i = 0; i < cell_count(merged) && !failed; i++)
        failed =
            ensio_merged_add(&coarser, cell_at(merged, i), (const uint64_t *)(const void *)merged->blocks.bytes) != 0;
    if (!failed) {
        const struct ensio_merged finer = *merged;
        merged->cells = coarser.cells;
        merged->blocks = coarser.blocks;
        merged->slots = coarser.slots;
        merged->level = coarser.level;
        coarser.cells = finer.cells;
        coarser.blocks = finer.blocks;
        coarser.slots = finer.slots;
    }
    ensio_merged_free(&coarser);
    return failed ? -1 : 0;
}

int ensio_merged_add(struct ensio_merged *merged, const struct ensio_job_cell *cell, const uint64_t *blocks)
{
    struct ensio_job_cell key = {
        .call = cell->call, .size_class = cell->size_class, .ordinal_class = cell->ordinal_class};
    make_coarser(&key, merged->level);
    uint16_t *slot = slot_for(merged, &key);
    if (*slot) {
        add_sums(cell_at(merged, *slot - 1U), cell);
        return add_blocks(merged, *slot - 1U, cell, blocks);
    }
    if (cell_count(merged) >= ENSIO_MERGED_CELLS && merged->level < 2)
        return tell_less_apart(merged) == 0 ? ensio_merged_add(merged, cell, blocks) : -1;
    struct ensio_job_cell *made =
        cell_count(merged) < SLOTS / 2 ? ensio_array_room(&merged->cells, sizeof *made) : NULL;
    if (!made)
        return -1;
    *made = *cell;
    make_coarser(made, merged->level);
    memset(made->blocks, 0, sizeof made->blocks);
    merged->cells.used += sizeof *made;
    *slot = (uint16_t)cell_count(merged);
    return add_blocks(merged, *slot - 1U, cell, blocks);
}

/* The number of text entries between two addresses, or -1 if one of them leads out. */
static int64_t count_texts(const uint8_t *at, const uint8_t *end)
{
    int64_t texts = 0;
    for (; at < end; texts++) {
        const struct ensio_text *entry = (const struct ensio_text *)(const void *)at;
        const uint64_t room = (uint64_t)(end - at);
        if (room < sizeof *entry || room - sizeof *entry < (entry->length + 7ULL) / 8 * 8)
            return -1;
        at += sizeof *entry + (entry->length + 7ULL) / 8 * 8;
    }
    return texts;
}

/* Whether the numbers in a cell refer to blocks and texts that there are. */
static int is_sound(const struct ensio_job_cell *cell, uint32_t blocks, uint64_t texts)
{
    if (cell->longest > ENSIO_LARGEST)
        return 0;
    for (uint32_t i = 0; i < cell->longest; i++)
        if (cell->largest[i].file > texts)
            return 0;
    for (uint32_t octave = 0; octave < ENSIO_OCTAVES; octave++)
        if (cell->blocks[octave] > blocks)
            return 0;
    return 1;
}

int ensio_merged_merge(struct ensio_merged *merged, const uint8_t *packed, uint64_t length)
{
    struct ensio_job_summary head;
    if (length < sizeof head)
        return -1;
    memcpy(&head, packed, sizeof head);
    const uint64_t cells_bytes = head.cells * sizeof(struct ensio_job_cell), blocks_bytes = head.blocks * BLOCK_BYTES;
    if (length != sizeof head + cells_bytes + blocks_bytes + head.text_bytes || head.level > 2)
        return -1;
    const int64_t texts = count_texts(packed + sizeof head + cells_bytes + blocks_bytes, packed + length);
    if (texts < 0)
        return -1;
    const uint8_t *at = packed + sizeof head + cells_bytes + blocks_bytes, *const end = packed + length;
    const uint64_t own_paths = merged->paths.used / sizeof(uint32_t);
    while (at < end) {
        const struct ensio_text *entry = (const struct ensio_text *)(const void *)at;
        if (!ensio_merged_path(merged, (const char *)(entry + 1), entry->length))
            return -1;
        at += sizeof *entry + (entry->length + 7U) / 8 * 8;
    }
    while (merged->level < head.level)
        if (tell_less_apart(merged) != 0)
            return -1;
    const struct ensio_job_cell *const cells = (const struct ensio_job_cell *)(const void *)(packed + sizeof head);
    for (uint32_t i = 0; i < head.cells; i++) {
        struct ensio_job_cell cell = cells[i];
        if (!is_sound(&cell, head.blocks, (uint64_t)texts))
            return -1;
        for (uint32_t j = 0; j < cell.longest; j++)
            cell.largest[j].file += cell.largest[j].file ? (uint32_t)own_paths : 0;
        if (ensio_merged_add(merged, &cell, (const uint64_t *)(const void *)(cells + head.cells)) != 0)
            return -1;
    }
    merged->processes += head.processes;
    return ensio_merged_compact(merged);
}

static void append(struct ensio_array *to, const struct ensio_array *part)
{
    if (part->used)
        memcpy(to->bytes + to->used, part->bytes, part->used);
    to->used += part->used;
}

int ensio_merged_pack(const struct ensio_merged *merged, struct ensio_array *to)
{
    const struct ensio_job_summary head = {
        .processes = merged->processes,
        .cells = (uint32_t)cell_count(merged),
        .blocks = (uint32_t)(merged->blocks.used / BLOCK_BYTES),
        .text_bytes = (uint32_t)merged->texts.used,
        .level = merged->level,
    };
    const uint64_t length = sizeof head + merged->cells.used + merged->blocks.used + merged->texts.used;
    if (length > MOST_BYTES || !ensio_array_room(to, length))
        return -1;
    memcpy(to->bytes + to->used, &head, sizeof head);
    to->used += sizeof head;
    append(to, &merged->cells);
    append(to, &merged->blocks);
    append(to, &merged->texts);
    return 0;
}

static const struct ensio_text *entry_of(const struct ensio_merged *merged, uint32_t number)
{
    const uint32_t place = ((const uint32_t *)(const void *)merged->paths.bytes)[number - 1];
    return (const struct ensio_text *)(const void *)(merged->texts.bytes + place);
}

static uint32_t path_count(const struct ensio_merged *merged)
{
    return (uint32_t)(merged->paths.used / sizeof(uint32_t));
}

uint32_t ensio_merged_path(struct ensio_merged *merged, const char *path, uint32_t length)
{
    const uint32_t room = (length + 7U) / 8 * 8;
    struct ensio_text *entry = path ? ensio_array_room(&merged->texts, sizeof *entry + room) : NULL;
    uint32_t *place = entry ? ensio_array_room(&merged->paths, sizeof *place) : NULL;
    if (!place)
        return 0;
    *place = (uint32_t)merged->texts.used;
    *entry = (struct ensio_text){.kind = ENSIO_TEXT_FILE, .id = path_count(merged) + 1, .length = length};
    memset(entry + 1, 0, room);
    memcpy(entry + 1, path, length);
    merged->texts.used += sizeof *entry + room;
    merged->paths.used += sizeof *place;
    return path_count(merged);
}

static uint64_t hash_of(const struct ensio_text *entry)
{
    const uint8_t *bytes = (const uint8_t *)(entry + 1);
    uint64_t hash = 0xcbf29ce484222325U;
    for (uint32_t i = 0; i < entry->length; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3U;
    return hash ^ hash >> 29;
}

/* New numbers for paths that move from one summary's texts to new ones. */
struct move {
    const struct ensio_merged *from;
    struct ensio_merged to;
    uint32_t *numbers; /* for each path in `from`, its number in `to`; 0: none yet */
    uint32_t *slots;   /* hash table of paths: numbers in `to` */
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
        move->slots[at] = ensio_merged_path(&move->to, (const char *)(entry + 1), entry->length);
    move->numbers[number - 1] = move->slots[at];
    return move->slots[at] ? 0 : -1;
}

static int move_paths(struct move *move, struct ensio_merged *merged)
{
    struct ensio_job_cell *cells = (struct ensio_job_cell *)(void *)merged->cells.bytes;
    for (uint64_t i = 0; i < merged->cells.used / sizeof *cells; i++)
        for (uint32_t j = 0; j < cells[i].longest; j++) {
            uint32_t *file = &cells[i].largest[j].file;
            if (*file && move_path(move, *file) != 0)
                return -1; /* the summary is unusable: the caller discards it */
            *file = *file ? move->numbers[*file - 1] : 0;
        }
    return 0;
}

int ensio_merged_compact(struct ensio_merged *merged)
{
    struct move move = {.from = merged, .slot_count = 2 * path_count(merged)};
    const uint64_t bytes = 3ULL * path_count(merged) * sizeof(uint32_t);
    if (!bytes)
        return 0;
    move.numbers = ensio_raw_memory(bytes);
    if (!move.numbers)
        return -1;
    move.slots = move.numbers + path_count(merged);
    const int moved = move_paths(&move, merged);
    ensio_raw_unmap(move.numbers, bytes);
    struct ensio_array texts = merged->texts, paths = merged->paths;
    merged->texts = move.to.texts;
    merged->paths = move.to.paths;
    ensio_array_free(&texts);
    ensio_array_free(&paths);
    return moved;
}
