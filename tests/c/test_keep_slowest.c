/* Mode tail: the threshold of slow calls, and the windows that keep them. */
#include "recorder_world.h"

#include <core/lock.h>
#include <summary/cells.h>
#include <summary/drain.h>
#include <summary/keep_slowest.h>

#include <ensio/bins.h>
#include <sys/mman.h>

#define SLOW_TICKS 1000000U

struct kept {
    uint64_t fast, slow;
};

static void add_kept(const struct ensio_window *window, uint64_t position, void *state)
{
    struct kept *kept = state;
    const struct ensio_event *first =
        (const struct ensio_event *)(const void *)((const char *)window + ENSIO_WINDOW_HEADER_BYTES);
    (void)position;
    if (window->kind == ENSIO_WINDOW_EVENTS)
        for (uint32_t i = 0; i < window->summarised; i++) {
            CHECK(first[i].call == WORLD_WRITE && first[i].duration);
            ++*(first[i].duration >= SLOW_TICKS ? &kept->slow : &kept->fast);
        }
}

/* Where one call in 200 is slow, mode tail keeps those, but for the first hundred calls of each ordinal class. Every
 * call is in the summary. */
static void slowest(void)
{
    enum { CALLS = 100000, SLOW = CALLS / 200, CLASSES = 12 };
    struct kept kept = {0, 0};
    uint64_t made = 0, bytes;
    world_begin_with_spool(ENSIO_TAIL);
    struct ensio_held held = ensio_lock();
    struct ensio_cursor *cursor = ensio_cursor_take();
    cursor->window = ensio_window_make(ENSIO_WINDOW_SCRATCH, 65536);
    CHECK(cursor->window);
    while (made < CALLS) {
        uint32_t filled = 0;
        for (; filled < ensio_window_slots(cursor->window) && made < CALLS; filled++, made++) {
            const uint64_t ticks = made % 200 == 137 ? SLOW_TICKS + made : 1000 + made % 10;
            ensio_window_events(cursor->window)[filled] = world_event(WORLD_WRITE, made + 1, ticks, 100);
        }
        cursor->window->summarised = 0;
        CHECK(ensio_drain(cursor, filled, 0) == 1);
    }
    ensio_unlock(held);
    const uint8_t *file = world_spool_file(&bytes);
    world_each_window(file, bytes, add_kept, &kept);
    munmap((void *)(uintptr_t)file, bytes);
    CHECK(kept.slow <= SLOW && kept.slow >= SLOW - CLASSES && kept.fast <= CLASSES * 10);
    CHECK(world_sums().count == CALLS && ensio_spool->dropped_events == 0);
}

/* The threshold is the first bin that at most a hundredth of the calls lie above. */
static void threshold(void)
{
    world_begin_with_spool(ENSIO_TAIL);
    struct ensio_held held = ensio_lock();
    struct ensio_place *place = ensio_cell_find(WORLD_WRITE, 7, 17);
    CHECK(place);
    for (uint32_t total = 100; total <= 100000; total *= 10) {
        for (uint32_t above = 0; above <= total / 50; above += 1 + total / 400) {
            struct ensio_place *at = place;
            uint64_t *low = ensio_cell_octave(&at, ensio_bin(1000) / ENSIO_BLOCK_BINS),
                     *high = ensio_cell_octave(&at, ensio_bin(1000000) / ENSIO_BLOCK_BINS);
            low[ensio_bin(1000) % ENSIO_BLOCK_BINS] = total - above;
            high[ensio_bin(1000000) % ENSIO_BLOCK_BINS] = above;
            place->cell->count = total;
            ensio_update_slow_bin(place);
            CHECK(place->slow_bin == ensio_bin(above > total / 100 ? 1000000 : 1000) + 1);
            CHECK(place->slow_due == total + total / 8);
            place->slow_due = UINT64_MAX;
            CHECK(ensio_is_slow(place, place->slow_bin) && !ensio_is_slow(place, place->slow_bin - 1));
        }
    }
    place->cell->count = 99;
    CHECK(!ensio_is_slow(place, ENSIO_BIN_COUNT - 1)); /* too few calls for a threshold */
    ensio_unlock(held);
}

int main(void)
{
    CASE(slowest);
    CASE(threshold);
    return 0;
}
