#include "cells.h"

#include <calls/calls.h>
#include <core/rawsys.h>
#include <spool/encode.h>
#include <spool/spool.h>

#include <stddef.h>
#include <string.h>

#define MOST_CELLS 1024
#define MOST_BLOCKS 8192
#define SLOTS (4 * MOST_CELLS)
#define MOST_WINDOWS 128 /* A dozen windows hold all possible cells, and each collection begins anew. */
#define CELLS_FOR_ALL 12
#define FIRST_WINDOW_BYTES 16384
#define NEXT_WINDOW_BYTES 65536 /* populated in parts */
#define PART_BYTES 16384
#define BLOCK_BYTES (ENSIO_BLOCK_BINS * sizeof(uint64_t))

/* Cells and blocks that are reserved for the coarser classes, by level: the last level has a cell for each call. */
#define CELLS_BY_CALL 448
_Static_assert(ENSIO_CALL_COUNT <= CELLS_BY_CALL, "the cells that are reserved for all calls do not suffice");
static const uint32_t cells_for[] = {MOST_CELLS / 2, MOST_CELLS - CELLS_BY_CALL, MOST_CELLS};
static const uint32_t blocks_for[] = {MOST_BLOCKS / 2, MOST_BLOCKS * 3 / 4, MOST_BLOCKS};

static struct ensio_place *places; /* MOST_CELLS of them */
static uint16_t slots[SLOTS];      /* hash table of keys: numbers of places, from 1 */
static struct ensio_place *first_changed;
static uint32_t cell_count, block_count;
static uint32_t blocks_before; /* blocks of closed cells, after which numbers continue */
static struct ensio_window *cell_window, *block_window;
static uint32_t blocks_in_window;
static uint64_t cells_populated, blocks_populated; /* bytes of these windows that may be stored to */

static struct ensio_window *cell_windows[MOST_WINDOWS]; /* windows of this spool */
static uint32_t cell_window_count;

static struct ensio_window *new_cell_window(uint64_t bytes)
{
    if (cell_window_count == MOST_WINDOWS)
        return NULL;
    struct ensio_window *window = ensio_window_begin(ENSIO_WINDOW_CELLS, bytes, PART_BYTES);
    if (window) {
        cell_windows[cell_window_count++] = window;
        cells_populated = PART_BYTES;
    }
    return window;
}

static struct ensio_window *new_block_window(uint64_t bytes)
{
    struct ensio_window *window = ensio_window_begin(ENSIO_WINDOW_BINS, bytes, PART_BYTES);
    if (window)
        blocks_populated = PART_BYTES;
    return window;
}

/* Allocates the next part of a window: 0, or -1 at its end or without space. */
static int populate_more(struct ensio_window *window, uint64_t *populated)
{
    if (*populated >= window->bytes || ensio_window_populate(window, *populated, *populated + PART_BYTES) != 0)
        return -1;
    *populated += PART_BYTES;
    return 0;
}

static struct ensio_cell *cells_of(struct ensio_window *window)
{
    return (struct ensio_cell *)(void *)((char *)window + ENSIO_WINDOW_HEADER_BYTES);
}

void ensio_cells_each(void (*each)(const struct ensio_cell *cell, void *state), void *state)
{
    for (uint32_t w = 0; w < cell_window_count; w++)
        for (uint32_t i = 0; i < cell_windows[w]->summarised; i++)
            each(cells_of(cell_windows[w]) + i, state);
}

void ensio_cell_changes(struct ensio_place *place)
{
    place->cell->sum = 0;
    place->next_changed = first_changed;
    first_changed = place;
}

void ensio_cells_sum(void)
{
    for (; first_changed; first_changed = first_changed->next_changed)
        first_changed->cell->sum = ensio_sum_words(first_changed->cell, offsetof(struct ensio_cell, largest));
}

int ensio_cells_begin(void)
{
    if (!places && !(places = ensio_raw_memory(MOST_CELLS * sizeof *places)))
        return -1;
    if (!cell_window)
        cell_window = new_cell_window(FIRST_WINDOW_BYTES);
    if (cell_window && !block_window)
        block_window = new_block_window(FIRST_WINDOW_BYTES);
    return block_window ? 0 : -1;
}

/* Windows stay mapped while the process lives. The last cells of each are reserved for classes of all calls of a
 * function: without space for another window, they still count every call. */
static struct ensio_cell *new_cell(uint32_t level)
{
    if (ensio_cells_begin() != 0)
        return NULL;
    const uint64_t room = (cells_populated - ENSIO_WINDOW_HEADER_BYTES) / sizeof(struct ensio_cell);
    if (cell_window->summarised + CELLS_FOR_ALL >= room && populate_more(cell_window, &cells_populated) != 0) {
        struct ensio_window *more = new_cell_window(NEXT_WINDOW_BYTES);
        if (!more && (level < 2 || cell_window->summarised >= room))
            return NULL;
        cell_window = more ? more : cell_window;
    }
    return cells_of(cell_window) + cell_window->summarised++;
}

static uint64_t *new_block(void)
{
    if (ENSIO_WINDOW_HEADER_BYTES + (blocks_in_window + 1) * BLOCK_BYTES > blocks_populated &&
        populate_more(block_window, &blocks_populated) != 0) {
        struct ensio_window *more = new_block_window(NEXT_WINDOW_BYTES);
        if (!more)
            return NULL;
        block_window = more;
        blocks_in_window = 0;
    }
    block_count++;
    return (uint64_t *)(void *)((char *)block_window + ENSIO_WINDOW_HEADER_BYTES + blocks_in_window++ * BLOCK_BYTES);
}

static uint32_t key_of(uint16_t call, uint8_t size_class, uint8_t ordinal_class)
{
    return (uint32_t)call << 16 | (uint32_t)size_class << 8 | ordinal_class;
}

static uint16_t *slot_for(uint32_t key)
{
    uint32_t at = (key * 0x9e3779b9U) >> 20;
    while (slots[at] && places[slots[at] - 1].key != key)
        at = (at + 1) % SLOTS;
    return &slots[at];
}

static struct ensio_place *make(uint16_t *slot, uint32_t key, uint32_t level)
{
    struct ensio_cell *cell = cell_count < cells_for[level] ? new_cell(level) : NULL;
    if (!cell)
        return NULL;
    cell->size_class = (uint8_t)(key >> 8);
    cell->ordinal_class = (uint8_t)key;
    __atomic_store_n(&cell->call, (uint16_t)(key >> 16), __ATOMIC_RELEASE);
    struct ensio_place *place = &places[cell_count++];
    *place = (struct ensio_place){.cell = cell, .key = key, .level = level};
    *slot = (uint16_t)cell_count;
    return place;
}

static struct ensio_place *find(uint32_t key, uint32_t level)
{
    for (;; level++) {
        if (level == 1)
            key |= ENSIO_ALL_ORDINALS;
        else if (level == 2)
            key |= ENSIO_ALL_SIZES << 8 | ENSIO_ALL_ORDINALS;
        uint16_t *slot = slot_for(key);
        struct ensio_place *place = *slot ? &places[*slot - 1] : make(slot, key, level);
        if (place || level == 2)
            return place;
    }
}

struct ensio_place *ensio_cell_find(uint16_t call, uint8_t size_class, uint8_t ordinal_class)
{
    return find(key_of(call, size_class, ordinal_class), 0);
}

uint64_t *ensio_cell_octave(struct ensio_place **place, uint32_t octave)
{
    struct ensio_place *at = *place;
    for (;;) {
        if (at->octaves[octave])
            break;
        uint64_t *block = block_count < blocks_for[at->level] ? new_block() : NULL;
        if (block) {
            at->octaves[octave] = block;
            at->cell->blocks[octave] = (uint16_t)(blocks_before + block_count);
            break;
        }
        struct ensio_place *coarser = at->level < 2 ? find(at->key, at->level + 1) : NULL;
        if (!coarser)
            return NULL;
        at = coarser;
    }
    *place = at;
    return at->octaves[octave];
}

static void begin_anew(uint32_t before)
{
    if (cell_count)
        memset(slots, 0, sizeof slots);
    cell_count = block_count = 0;
    blocks_before = before;
    first_changed = NULL;
    cell_window = NULL;
}

void ensio_cells_close(void)
{
    begin_anew(blocks_before + block_count);
}

void ensio_cells_forget(void)
{
    begin_anew(0);
    cell_window_count = 0;
    block_window = NULL;
    blocks_in_window = 0;
}
