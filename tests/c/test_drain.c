/* Draining a window into the summary: in parts, with empty slots, without space, and ended by a kill. */
#include "recorder_world.h"

#include <core/lock.h>
#include <summary/cells.h>
#include <summary/drain.h>

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define SLOTS 84U /* of a window of 4096 bytes */
#define RATE (1ULL << ENSIO_RATE_BITS)

static struct ensio_cursor *cursor;
static struct ensio_event *slots;

static void use(uint16_t kind)
{
    cursor->window = ensio_window_make(kind, 4096);
    CHECK(cursor->window && ensio_window_slots(cursor->window) == SLOTS);
    cursor->window->rate = RATE;
    slots = ensio_window_events(cursor->window);
}

static void begin(int mode, uint16_t kind)
{
    world_begin_with_spool(mode);
    ensio_lock();
    cursor = ensio_cursor_take();
    CHECK(cursor);
    use(kind);
}

static void fill(uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        slots[i] = world_event(i % 3 ? WORLD_WRITE : WORLD_READ, 10 * i + 1, i % 11, i % 5 ? 4096 : i);
}

static uint64_t moved_in(uint32_t from, uint32_t to)
{
    uint64_t sum = 0;
    for (uint32_t i = from; i < to; i++)
        sum += i % 5 ? 4096 : i;
    return sum;
}

/* However a window is cut into parts, each event is added once. */
static void parts(void)
{
    begin(ENSIO_TRACE, ENSIO_WINDOW_EVENTS);
    srand(5);
    uint64_t count = 0, moved = 0;
    for (int round = 0; round < 200; round++) {
        if (round)
            use(ENSIO_WINDOW_EVENTS);
        fill(0, SLOTS);
        for (uint32_t end = 0; end < SLOTS;) {
            end += (uint32_t)rand() % (SLOTS - end + 1);
            CHECK(ensio_drain(cursor, end, rand() % 2) == 1);
            CHECK(cursor->window->summarised == end);
            CHECK(ensio_spool->folding == 0);
            CHECK(ensio_drain(cursor, end / 2, 0) == 1); /* already added */
            CHECK(cursor->window->summarised == end);
        }
        count += SLOTS;
        moved += moved_in(0, SLOTS);
    }
    const struct world_sums sums = world_sums();
    CHECK(sums.count == count && sums.moved == moved && sums.in_bins == count);
    CHECK(ensio_spool->dropped_events == 0);
    for (uint32_t i = 0; i < SLOTS; i++)
        CHECK(slots[i].call != 0); /* the events remain */
}

/* A slot that was claimed but not filled holds the drain up while it may still be filled. */
static void empty_slots(void)
{
    begin(ENSIO_TRACE, ENSIO_WINDOW_EVENTS);
    fill(0, 40);
    slots[10].call = 0;
    CHECK(ensio_drain(cursor, 40, 1) == 0);
    CHECK(cursor->window->summarised == 10 && world_sums().count == 10 && ensio_spool->folding == 0);
    slots[10].call = WORLD_READ;
    CHECK(ensio_drain(cursor, 20, 1) == 1);
    CHECK(cursor->window->summarised == 20 && world_sums().count == 20);
    slots[20].call = slots[39].call = 0; /* will not be filled any more */
    CHECK(ensio_drain(cursor, 40, 0) == 1);
    CHECK(cursor->window->summarised == 40 && world_sums().count == 38);
}

/* The slots of a scratch window are free again. Its events count as dropped only where all were to be kept. */
static void scratch(void)
{
    begin(ENSIO_PROFILE, ENSIO_WINDOW_SCRATCH);
    for (int round = 1; round <= 3; round++) {
        fill(0, SLOTS);
        CHECK(ensio_drain(cursor, 30, 0) == 1 && ensio_drain(cursor, SLOTS, 0) == 1);
        for (uint32_t i = 0; i < SLOTS; i++)
            CHECK(slots[i].call == 0);
        CHECK(world_sums().count == SLOTS * (uint64_t)round);
        cursor->window->summarised = 0;
    }
    CHECK(ensio_spool->dropped_events == 0 && ensio_spool->lost_calls == 0);
    ensio_settings.mode = ENSIO_TRACE;
    fill(0, SLOTS);
    CHECK(ensio_drain(cursor, SLOTS, 0) == 1);
    CHECK(world_sums().count == 4 * SLOTS);
    CHECK(ensio_spool->dropped_events == SLOTS && ensio_spool->lost_calls == 0);
}

/* Without space for a summary, readers find the events of a window there; those of a scratch window are lost, and
 * counted. */
static void without_space(void)
{
    int kept, emptied;
    begin(ENSIO_TRACE, ENSIO_WINDOW_EVENTS);
    fill(0, SLOTS);
    world_limit_memory(1);
    kept = ensio_drain(cursor, SLOTS, 0);
    world_limit_memory(0);
    CHECK(kept == 0 && cursor->window->summarised == 0 && ensio_spool->folding == 0);
    use(ENSIO_WINDOW_SCRATCH);
    fill(0, SLOTS);
    world_limit_memory(1);
    emptied = ensio_drain(cursor, SLOTS, 0);
    world_limit_memory(0);
    CHECK(emptied == 1 && cursor->window->summarised == SLOTS);
    CHECK(ensio_spool->lost_calls == SLOTS && ensio_spool->dropped_events == SLOTS);
    CHECK(world_sums().count == 0);
}

/* Cursors of threads form a list; those of others are drained up to the first empty slot. */
static void cursors(void)
{
    struct ensio_cursor *many[500];
    begin(ENSIO_TRACE, ENSIO_WINDOW_EVENTS);
    for (int i = 0; i < 500; i++) {
        many[i] = ensio_cursor_take();
        CHECK(many[i] && many[i]->window == NULL && many[i]->events_bytes == 0 && many[i]->nested_time.depths == 0);
        many[i]->events_bytes = 77; /* a cursor that is used again is empty */
    }
    CHECK(ensio_cursor_count() == 501);
    fill(0, 50);
    ensio_drain_others(cursor);
    CHECK(cursor->window->summarised == 0);
    ensio_drain_others(many[0]);
    CHECK(cursor->window->summarised == 50 && world_sums().count == 50);
    for (int i = 0; i < 500; i += 2)
        ensio_cursor_release(many[i]);
    ensio_cursor_release(many[0]); /* released twice: nothing happens */
    CHECK(ensio_cursor_count() == 251);
    struct ensio_cursor *again = ensio_cursor_take();
    CHECK(again->events_bytes == 0);
    ensio_drain_forget();
    CHECK(ensio_cursor_count() == 0 && world_sums().cells == 0);
}

/* What the child shares with the test, beside its spool. */
struct progress {
    volatile uint64_t rounds; /* that were drained as a whole */
    volatile int is_between;  /* between two rounds */
};

static void drain_for_ever(struct progress *progress)
{
    begin(ENSIO_TRACE, ENSIO_WINDOW_EVENTS);
    fill(0, SLOTS);
    for (;;) {
        CHECK(ensio_drain(cursor, SLOTS, 0) == 1);
        progress->is_between = 1;
        progress->rounds++;
        cursor->window->summarised = 0;
        progress->is_between = 0;
    }
}

struct left {
    uint64_t summarised, counted, in_bins;
};

static void add_window(const struct ensio_window *window, uint64_t position, void *state)
{
    struct left *left = state;
    const char *first = (const char *)window + ENSIO_WINDOW_HEADER_BYTES;
    const struct ensio_cell *cells = (const struct ensio_cell *)(const void *)first;
    const uint64_t *bins = (const uint64_t *)(const void *)first;
    (void)position;
    if (window->kind == ENSIO_WINDOW_EVENTS)
        left->summarised += window->summarised;
    for (uint32_t i = 0; window->kind == ENSIO_WINDOW_CELLS && i < window->summarised; i++)
        left->counted += cells[i].count;
    if (window->kind == ENSIO_WINDOW_BINS)
        for (uint64_t i = 0; i < (window->bytes - ENSIO_WINDOW_HEADER_BYTES) / sizeof *bins; i++)
            left->in_bins += bins[i];
}

/* What a killed process leaves is exact, or says that one event may be missing in part, or be added twice. */
static void killed(void)
{
    struct progress *progress = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(progress != MAP_FAILED);
    for (unsigned kills = 0; kills < 60; kills++) {
        *progress = (struct progress){0, 0};
        const pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0)
            drain_for_ever(progress);
        while (progress->rounds < 10)
            CHECK(waitpid(child, NULL, WNOHANG) == 0);
        CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
        uint64_t bytes;
        struct left left = {0, 0, 0};
        const uint8_t *file = world_spool_of(child, &bytes);
        const uint32_t folding = ((const struct ensio_spool *)(const void *)file)->folding;
        world_each_window(file, bytes, add_window, &left);
        munmap((void *)(uintptr_t)file, bytes);
        if (progress->is_between)
            continue;
        left.summarised += progress->rounds * SLOTS;
        CHECK(left.counted <= left.summarised + folding && left.counted + folding >= left.summarised);
        CHECK(left.in_bins <= left.counted + folding && left.in_bins + folding >= left.counted);
    }
}

int main(void)
{
    CASE(parts);
    CASE(empty_slots);
    CASE(scratch);
    CASE(without_space);
    CASE(cursors);
    CASE(killed);
    return 0;
}
