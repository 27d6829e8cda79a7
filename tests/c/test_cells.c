/* The cells of the summary: classes of sizes and ordinals, extremes, and coarser classes beyond the limits. */
#include "recorder_world.h"

#include <core/lock.h>
#include <summary/accumulate.h>
#include <summary/cells.h>
#include <summary/ordinals.h>
#include <time/tick_rate.h>

#include <ensio/bins.h>
#include <unistd.h>

#define RATE (1ULL << ENSIO_RATE_BITS) /* a tick is a nanosecond */

static struct ensio_cursor *cursor;

/* A window of 84 slots, whose events the tests add one by one. */
static void begin(int mode)
{
    world_begin_with_spool(mode);
    ensio_lock();
    cursor = ensio_cursor_take();
    CHECK(cursor);
    cursor->window = ensio_window_make(ENSIO_WINDOW_EVENTS, 4096);
    CHECK(cursor->window && ensio_cells_begin() == 0);
    cursor->window->rate = RATE;
}

static void add(struct ensio_event event)
{
    struct ensio_run_cache cache = ensio_empty_run_cache();
    CHECK(ensio_add_event(cursor, &event, &cache, RATE) == 0);
}

/* The only cell with calls of this size class and ordinal class; NULL: none. */
struct wanted {
    uint16_t call;
    uint8_t size_class, ordinal_class;
    const struct ensio_cell *found;
};

static void match(const struct ensio_cell *cell, void *state)
{
    struct wanted *wanted = state;
    if (cell->call != wanted->call || cell->size_class != wanted->size_class ||
        cell->ordinal_class != wanted->ordinal_class)
        return;
    CHECK(!wanted->found);
    wanted->found = cell;
}

static const struct ensio_cell *cell(uint16_t call, uint8_t size_class, uint8_t ordinal_class)
{
    struct wanted wanted = {call, size_class, ordinal_class, NULL};
    ensio_cells_each(match, &wanted);
    return wanted.found;
}

/* Class 0 is "no bytes", class n is 2^(n-1) to 2^n - 1, for all of 64 bits. */
static void size_classes(void)
{
    begin(ENSIO_TRACE);
    uint16_t file = 0;
    for (uint32_t bits = 0; bits <= 64; bits++) {
        const uint64_t low = bits ? 1ULL << (bits - 1) : 0, high = bits == 64 ? UINT64_MAX : (1ULL << bits) - 1;
        struct ensio_event event = world_event(WORLD_WRITE, 1, 1, low);
        event.file = ++file; /* ordinals begin at 1 for each file */
        event.moved = 0;
        add(event);
        const struct ensio_cell *made = cell(WORLD_WRITE, (uint8_t)bits, 1);
        CHECK(made && made->count == 1 && made->min_requested == low);
        event.requested = high;
        event.file = ++file;
        add(event);
        CHECK(made->count == 2 && made->min_requested == low && made->max_requested == high);
    }
    CHECK(world_sums().cells == 65 && world_sums().count == 130);
}

/* Calls 1 to 16 have a class each, then each octave has one: 17 to 31, 32 to 63 ... */
static void ordinal_classes(void)
{
    begin(ENSIO_TRACE);
    for (uint64_t ordinal = 1; ordinal <= 4096; ordinal++)
        add(world_event(WORLD_WRITE, ordinal, 1, 100));
    for (uint8_t class = 1; class <= ENSIO_ORDINALS_APART; class ++)
        CHECK(cell(WORLD_WRITE, 7, class)->count == 1);
    CHECK(cell(WORLD_WRITE, 7, 17)->count == 31 - 16);
    CHECK(cell(WORLD_WRITE, 7, 17)->first_start == 17);
    uint64_t first = 32;
    for (uint8_t class = 18; class <= 24; class ++, first *= 2) {
        CHECK(cell(WORLD_WRITE, 7, class)->count == first);
        CHECK(cell(WORLD_WRITE, 7, class)->first_start == first);
        CHECK(cell(WORLD_WRITE, 7, class)->last_end == 2 * first);
    }
    CHECK(first == 4096);
    CHECK(cell(WORLD_WRITE, 7, 25)->count == 1);
    CHECK(!cell(WORLD_WRITE, 7, 26) && !cell(WORLD_WRITE, 7, ENSIO_ORDINAL_UNKNOWN));
    /* Other operations and files have separate ordinals. */
    add(world_event(WORLD_READ, 1, 1, 100));
    CHECK(cell(WORLD_READ, 7, 1)->count == 1);
}

/* Sums and extremes at the ends of the range. A failed call moves nothing. */
static void extremes(void)
{
    begin(ENSIO_TRACE);
    struct ensio_event failed = world_event(WORLD_READ, 50, 0, 8);
    failed.moved = -5;
    add(failed);
    const struct ensio_cell *first = cell(WORLD_READ, 4, 1);
    CHECK(first->errors == 1 && first->moved == 0 && first->min_ns == 0 && first->max_ns == 0);
    for (int i = 0; i < 15; i++) /* ordinals 2 to 16 */
        add(world_event(WORLD_READ, 1, 1, 8));
    const uint64_t durations[] = {1000, 0, 1, 31, 32, 63, 64, 1ULL << 62, 1000, 7, 5, 3};
    uint64_t sum = 0;
    for (size_t i = 0; i < 12; i++) {
        add(world_event(WORLD_READ, 100 - i, durations[i], 8));
        sum += durations[i];
    }
    const struct ensio_cell *rest = cell(WORLD_READ, 4, 17);
    CHECK(rest->count == 12 && rest->time_ns == sum && rest->shift_ns == 1000);
    CHECK(rest->min_ns == 0 && rest->max_ns == 1ULL << 62 && rest->first_start == 89);
    CHECK(rest->last_end == 93 + (1ULL << 62));
    /* The eight longest; of the two calls of 1000 ns both, of those of at most 5 ns none. */
    uint64_t longest = 0;
    for (int i = 0; i < ENSIO_LARGEST; i++)
        longest += rest->largest[i].duration;
    CHECK(longest == (1ULL << 62) + 1000 + 1000 + 64 + 63 + 32 + 31 + 7);
    const struct world_sums sums = world_sums();
    CHECK(sums.count == 28 && sums.in_bins == 28 && sums.without_bin == 0);
}

/* Of equal durations, the earlier calls are kept, in whatever order they come. */
static void equal_longest(void)
{
    begin(ENSIO_TRACE);
    for (int i = 0; i < 16; i++)
        add(world_event(WORLD_WRITE, 1, 1, 8));
    for (uint64_t i = 0; i < 15; i++)
        add(world_event(WORLD_WRITE, 100 + (i * 7) % 15, 5, 8));
    const struct ensio_cell *all = cell(WORLD_WRITE, 4, 17);
    uint64_t seen = 0;
    for (int i = 0; i < ENSIO_LARGEST; i++)
        seen |= 1ULL << (all->largest[i].start - 100);
    CHECK(all->count == 15);
    /* A later call that is as long as the shortest one kept does not replace it, so these are the first eight. */
    for (uint64_t i = 0; i < ENSIO_LARGEST; i++)
        CHECK(seen & 1ULL << (i * 7) % 15);
}

/* Every duration is in the bin of the law, up to the last one. */
static void bins(void)
{
    begin(ENSIO_TRACE);
    struct ensio_place *place = ensio_cell_find(WORLD_WRITE, 7, 1);
    uint64_t added = 0;
    for (uint32_t shift = 0; shift < 64; shift++)
        for (int64_t beside = -1; beside <= 1; beside++, added++)
            CHECK(ensio_bin((1ULL << shift) + (uint64_t)beside) < ENSIO_OCTAVES * ENSIO_BLOCK_BINS);
    CHECK(ensio_bin(UINT64_MAX) == ENSIO_BIN_COUNT - 1 && ENSIO_BIN_COUNT == ENSIO_OCTAVES * ENSIO_BLOCK_BINS);
    for (uint32_t octave = 0; octave < ENSIO_OCTAVES; octave++) {
        struct ensio_place *at = place;
        uint64_t *counts = ensio_cell_octave(&at, octave);
        CHECK(counts && at == place && place->cell->blocks[octave] == octave + 1);
        CHECK(ensio_cell_octave(&at, octave) == counts);
        for (int i = 0; i < ENSIO_BLOCK_BINS; i++)
            CHECK(counts[i]++ == 0); /* blocks do not overlap */
    }
    CHECK(world_sums().in_bins == ENSIO_OCTAVES * ENSIO_BLOCK_BINS);
}

/* Half of 1024 cells distinguish ordinals, then 64 sizes, and the rest is reserved for whole calls. Nothing is
 * lost, and a cell that was made stays what it was. */
static void saturation(void)
{
    begin(ENSIO_TRACE);
    struct ensio_place *first = ensio_cell_find(1, 0, 0);
    uint64_t asked = 0, levels[3] = {0};
    for (uint16_t call = 1; call <= 200; call++)
        for (uint8_t size = 0; size < 8; size++)
            for (uint8_t ordinal = 0; ordinal < 4; ordinal++, asked++) {
                struct ensio_place *place = ensio_cell_find(call, size, ordinal);
                CHECK(place && place->cell->call == call);
                CHECK(place->level > 0 || place->cell->ordinal_class == ordinal);
                CHECK(place->level == 0 || place->cell->ordinal_class == ENSIO_ALL_ORDINALS);
                CHECK(place->cell->size_class == (place->level > 1 ? ENSIO_ALL_SIZES : size));
                place->cell->count++;
                levels[place->level]++;
            }
    CHECK(levels[0] == 512);
    CHECK(levels[1] == 64 * 4);
    CHECK(levels[2] == asked - 512 - 64 * 4);
    CHECK(world_sums().count == asked);
    CHECK(world_sums().cells == 576 + (200 - 24)); /* 24 calls have finer cells, all others one each */
    CHECK(ensio_cell_find(1, 0, 0) == first);
}

/* Beyond the limit of blocks, counts go to coarser cells, which still find theirs. */
static void blocks_at_their_limit(void)
{
    begin(ENSIO_TRACE);
    uint64_t finer = 0, coarser = 0, asked = 0;
    for (uint8_t size = 0; size < 100; size++)
        for (uint32_t octave = 0; octave < ENSIO_OCTAVES; octave++, asked++) {
            struct ensio_place *at = ensio_cell_find(WORLD_WRITE, size, 1), *before = at;
            uint64_t *counts = ensio_cell_octave(&at, octave);
            CHECK(counts);
            (*counts)++;
            if (at == before)
                finer++;
            else
                coarser++;
        }
    CHECK(finer == 8192 / 2 && coarser == asked - finer);
    CHECK(world_sums().in_bins == asked);
}

/* Cells that went into a job file keep their numbers of blocks, and later calls begin new ones. */
static void closed(void)
{
    begin(ENSIO_TRACE);
    add(world_event(WORLD_WRITE, 1, 40, 100));
    ensio_cells_close();
    ensio_ordinals_forget();
    add(world_event(WORLD_WRITE, 2, 40, 100));
    const struct world_sums sums = world_sums();
    CHECK(sums.cells == 2 && sums.count == 2 && sums.in_bins == 2);
    struct ensio_place *place = ensio_cell_find(WORLD_WRITE, 7, 1);
    CHECK(place->cell->count == 1 && place->cell->blocks[1] == 2);
}

/* Without memory for another window, the last cells of the present one still take every call. */
static void without_memory(void)
{
    begin(ENSIO_TRACE);
    uint64_t levels[3] = {0}, asked = 0;
    world_limit_memory(1);
    for (uint16_t call = 1; call <= 3; call++)
        for (uint8_t size = 0; size < 60; size++, asked++) {
            struct ensio_place *place = ensio_cell_find(call, size, 1);
            if (!place)
                _exit(9);
            place->cell->count++;
            levels[place->level]++;
        }
    world_limit_memory(0);
    CHECK(levels[0] > 0 && levels[1] == 0 && levels[2] > 0);
    CHECK(world_sums().count == asked);
    CHECK(cell(3, ENSIO_ALL_SIZES, ENSIO_ALL_ORDINALS)->count == 60);
}

/* The path of most events gives what the path of a single event gives, bit by bit. */
static void runs_are_added_like_single_events(void)
{
    begin(ENSIO_TRACE);
    struct ensio_run_cache cache = ensio_empty_run_cache();
    struct ensio_event *slots = ensio_window_events(cursor->window);
    uint64_t rates[] = {RATE, RATE / 3 + 12345, 3 * RATE + 7};
    uint32_t in_runs = 0;
    for (uint32_t step = 0; step < 30000; step++) {
        const uint64_t rate = rates[step / 10000];
        const uint32_t duration = (step * 2654435761U) >> 20;
        struct ensio_event event =
            world_event(WORLD_WRITE, step + 1, duration * (step % 3000 == 2999 ? 99U : 1U), 4096);
        event.moved = step % 501 == 500 ? -28 : 4096;
        cursor->window->rate = rate;
        cursor->window->summarised = 0;
        slots[0] = event;
        const uint32_t added = cache.place ? ensio_add_run(cursor, 0, 1, &cache, rate) : 0;
        in_runs += added;
        CHECK(cursor->window->summarised == added);
        if (!added)
            CHECK(ensio_add_event(cursor, &event, &cache, rate) == 0);
        /* The same as a read, always by the single path. */
        event.call = WORLD_READ;
        struct ensio_run_cache none = ensio_empty_run_cache();
        CHECK(ensio_add_event(cursor, &event, &none, rate) == 0);
    }
    CHECK(in_runs > 20000);
    for (uint8_t class = 1; class < 30; class ++) {
        const struct ensio_cell *one = cell(WORLD_WRITE, 13, class), *other = cell(WORLD_READ, 13, class);
        CHECK(!one == !other);
        if (!one)
            continue;
        CHECK(one->count == other->count && one->errors == other->errors && one->moved == other->moved);
        CHECK(one->time_ns == other->time_ns && one->min_ns == other->min_ns && one->max_ns == other->max_ns);
        CHECK(one->power2 == other->power2 && one->power3 == other->power3 && one->power4 == other->power4);
        CHECK(one->first_start == other->first_start && one->last_end == other->last_end);
        for (int i = 0; i < ENSIO_LARGEST; i++)
            CHECK(one->largest[i].duration == other->largest[i].duration &&
                  one->largest[i].start == other->largest[i].start);
        for (uint32_t octave = 0; octave < ENSIO_OCTAVES; octave++) {
            struct ensio_place *of_one = ensio_cell_find(WORLD_WRITE, 13, class),
                               *of_other = ensio_cell_find(WORLD_READ, 13, class);
            CHECK(!of_one->octaves[octave] == !of_other->octaves[octave]);
            for (int i = 0; of_one->octaves[octave] && i < ENSIO_BLOCK_BINS; i++)
                CHECK(of_one->octaves[octave][i] == of_other->octaves[octave][i]);
        }
    }
}

int main(void)
{
    CASE(size_classes);
    CASE(ordinal_classes);
    CASE(extremes);
    CASE(equal_longest);
    CASE(bins);
    CASE(saturation);
    CASE(blocks_at_their_limit);
    CASE(closed);
    CASE(without_memory);
    CASE(runs_are_added_like_single_events);
    return 0;
}
