/* regions.c: phases and regions that the program names through ensio.h.
 *
 * They lie in separate windows, in the form of events. They are kept in every mode and for any choice of layers, and
 * readers find them without reading the calls. They are rare, so everything happens under the lock. */
#include "peer_recorder.h"

#include <core/bounded_string.h>
#include <core/lock.h>
#include <core/rawsys.h>
#include <core/recorder.h>
#include <spool/spool.h>
#include <surroundings/sample.h>
#include <threads/thread.h>
#include <time/clock.h>

#include <ensio/ensio.h>
#include <string.h>

enum {
#define CALL(number, call, op) CALL_##call = (number),
#include <calls/program.def>
};
#undef CALL

#define NAMES 2048 /* at most half the slots of the table */
#define NAME_BYTES 256
#define MOST_OPEN 64 /* nested regions of a thread; deeper ones are not recorded */
#define BLOCK_BYTES 4096
#define FIRST_WINDOW_BYTES 4096
#define LARGEST_WINDOW_BYTES 262144
#define WINDOW_GROWTH 4

struct name {
    uint64_t hash;
    uint32_t id;
    uint32_t spool; /* number of the spool that holds it */
    char text[];
};

static struct name *table[2 * NAMES];
static uint32_t names;
static char *block;
static uint32_t block_left;

static struct {
    struct ensio_window *window;
    uint32_t used, capacity;
    uint32_t spool; /* number of the spool that it lies in */
} marks;

static _Thread_local struct {
    uint32_t generation; /* a forked child is in no region of its parent */
    uint32_t depth;
    struct {
        uint32_t id;
        uint64_t start;
    } open[MOST_OPEN];
} own;

static struct name **slot_for(uint64_t hash, const char *text)
{
    uint32_t at = (uint32_t)hash % (2 * NAMES);
    while (table[at] && (table[at]->hash != hash || strcmp(table[at]->text, text) != 0))
        at = (at + 1) % (2 * NAMES);
    return &table[at];
}

static struct name *add_name(struct name **slot, uint64_t hash, const char *text)
{
    const size_t length = strlen(text) + 1;
    const uint32_t bytes = (uint32_t)((sizeof(struct name) + length + 7) / 8 * 8);
    if (names == NAMES)
        return NULL;
    if (block_left < bytes) {
        char *fresh = ensio_raw_memory(BLOCK_BYTES);
        if (!fresh)
            return NULL;
        block = fresh;
        block_left = BLOCK_BYTES;
    }
    struct name *name = (struct name *)(void *)block;
    block += bytes;
    block_left -= bytes;
    name->hash = hash;
    name->id = ++names;
    memcpy(name->text, text, length);
    *slot = name;
    return name;
}

/* Stores a name in this process's spool if necessary. Returns its number, or 0 if there are too many. */
static uint32_t number_of(const char *given)
{
    char text[NAME_BYTES];
    const size_t length = strnlen(given, sizeof text - 1);
    memcpy(text, given, length);
    text[length] = '\0';
    const uint64_t hash = ensio_hash(text);
    struct name **slot = slot_for(hash, text), *name = *slot ? *slot : add_name(slot, hash, text);
    if (!name)
        return 0;
    if (name->spool != ensio_spool_number &&
        ensio_text_store(ENSIO_TEXT_REGION, name->id, name->text, (uint32_t)strlen(name->text)) == 0)
        name->spool = ensio_spool_number;
    return name->id;
}

static int next_window(void)
{
    uint64_t bytes = marks.window ? WINDOW_GROWTH * marks.window->bytes : FIRST_WINDOW_BYTES;
    struct ensio_window *window =
        ensio_window_make(ENSIO_WINDOW_MARKS, bytes < LARGEST_WINDOW_BYTES ? bytes : LARGEST_WINDOW_BYTES);
    if (!window)
        return -1;
    if (marks.window)
        ensio_raw_unmap(marks.window, marks.window->bytes);
    marks.window = window;
    marks.used = 0;
    marks.capacity = (uint32_t)((window->bytes - ENSIO_WINDOW_HEADER_BYTES) / sizeof(struct ensio_event));
    return 0;
}

/* The call number is stored last, as in every event. */
static void store(struct ensio_thread *thread, uint16_t call, uint32_t id, uint64_t start, uint64_t duration)
{
    if (marks.used == marks.capacity && next_window() != 0) {
        ensio_spool_lose();
        return;
    }
    struct ensio_event *event =
        (struct ensio_event *)(void *)((char *)marks.window + ENSIO_WINDOW_HEADER_BYTES) + marks.used++;
    ensio_thread_number(thread);
    event->start = start;
    event->duration = duration;
    event->offset = id;
    event->requested = thread->number;
    __atomic_store_n(&event->call, call, __ATOMIC_RELEASE);
}

static void begin_region(struct ensio_thread *thread, uint32_t id, uint64_t now)
{
    if (own.depth < MOST_OPEN) {
        own.open[own.depth].id = id;
        own.open[own.depth].start = now;
        own.depth++;
    }
    store(thread, CALL_region_begin, id, now, 0);
}

/* Regions that began inside this one and have not ended yet stay open. */
static void end_region(struct ensio_thread *thread, uint32_t id, uint64_t now)
{
    uint32_t at = own.depth;
    while (at > 0 && own.open[at - 1].id != id)
        at--;
    if (at == 0)
        return;
    const uint64_t start = own.open[at - 1].start;
    memmove(&own.open[at - 1], &own.open[at], (own.depth - at) * sizeof own.open[0]);
    own.depth--;
    store(thread, CALL_region, id, start, now - start);
}

static void mark(struct ensio_thread *thread, int what, const char *name, uint64_t now)
{
    if (ensio_ensure_spool() != 0)
        return;
    if (own.generation != ensio_process->generation) {
        own.generation = ensio_process->generation;
        own.depth = 0;
    }
    if (marks.spool != ensio_spool_number) {
        marks.spool = ensio_spool_number;
        marks.window = NULL; /* the parent's window stays mapped, because fork may have interrupted a store to it */
        marks.used = marks.capacity = 0;
    }
    const uint32_t id = number_of(name);
    if (what == ENSIO_MARK_PHASE) {
        store(thread, CALL_phase, id, now, 0);
        ensio_surroundings_sample(now);
    } else if (what == ENSIO_MARK_REGION_BEGIN)
        begin_region(thread, id, now);
    else if (what == ENSIO_MARK_REGION_END)
        end_region(thread, id, now);
}

/* The program or its libraries call this through ensio.h. */
__attribute__((visibility("default"))) void ensio_mark(int what, const char *name);

void ensio_mark(int what, const char *name)
{
    if (!name || !ensio_ready(&ensio_thread)) {
#ifndef ENSIO_PRELOAD
        ensio_mark_forwarded(what, name);
#endif
        return;
    }
    const uint64_t now = ensio_ticks();
    struct ensio_held held = ensio_lock();
    mark(&ensio_thread, what, name, now);
    ensio_unlock(held);
}
