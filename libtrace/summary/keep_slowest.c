#include "keep_slowest.h"

#include <core/rawsys.h>
#include <spool/spool.h>

#define FIRST_KEPT_BYTES 4096
#define LARGEST_KEPT_BYTES 262144

/* The threshold is updated whenever the cell has grown by an eighth. It is therefore based on at least 89 % of the
 * calls. */
void ensio_update_slow_bin(struct ensio_place *place)
{
    uint64_t count = place->cell->count, above = 0, most = count / 100;
    uint32_t bin = ENSIO_OCTAVES * ENSIO_BLOCK_BINS;
    while (bin > 0) {
        const uint64_t *octave = place->octaves[(bin - 1) / ENSIO_BLOCK_BINS];
        if (!octave) {
            bin -= ENSIO_BLOCK_BINS;
            continue;
        }
        above += octave[(bin - 1) % ENSIO_BLOCK_BINS];
        if (above > most)
            break;
        bin--;
    }
    place->slow_bin = bin;
    place->slow_due = count + count / 8;
}

static int new_window(struct ensio_cursor *cursor)
{
    uint64_t bytes = cursor->kept ? 4 * cursor->kept->bytes : FIRST_KEPT_BYTES;
    struct ensio_window *window =
        ensio_window_make(ENSIO_WINDOW_EVENTS, bytes < LARGEST_KEPT_BYTES ? bytes : LARGEST_KEPT_BYTES);
    if (!window)
        return -1;
    window->thread = cursor->window->thread;
    window->tid = cursor->window->tid;
    if (cursor->kept)
        ensio_raw_unmap(cursor->kept, cursor->kept->bytes);
    cursor->kept = window;
    return 0;
}

static void mark_in_cell(struct ensio_cell *cell, const struct ensio_event *event)
{
    for (uint32_t i = 0; i < ENSIO_LARGEST && i < cell->count; i++)
        if (cell->largest[i].start == event->start && cell->largest[i].duration == event->duration)
            cell->largest[i].flags |= ENSIO_IS_EVENT;
}

int ensio_keep_slowest(struct ensio_cursor *cursor, struct ensio_place *place, const struct ensio_event *event)
{
    if ((!cursor->kept || cursor->kept->summarised >= ensio_window_slots(cursor->kept)) && new_window(cursor) != 0)
        return -1;
    struct ensio_window *kept = cursor->kept;
    struct ensio_event *slot = ensio_window_events(kept) + kept->summarised;
    uint16_t call = event->call;
    *slot = (struct ensio_event){event->start, event->duration, event->offset, event->requested,
                                 event->moved, event->file,     event->site,   0,
                                 event->depth, event->flags};
    __atomic_store_n(&slot->call, call, __ATOMIC_RELEASE);
    __atomic_store_n(&kept->summarised, kept->summarised + 1, __ATOMIC_RELEASE);
    if (place)
        mark_in_cell(place->cell, event);
    return 0;
}

#define MOST_GROUPS 1024 /* functions and size classes of a process; further ones have no such events */

/* The longest calls of a function and size class. */
struct group {
    uint32_t key;
    uint32_t count;
    struct ensio_event *longest[ENSIO_LARGEST];
    uint16_t threads[ENSIO_LARGEST];
};

struct groups {
    uint32_t count;
    struct group group[MOST_GROUPS];
};

static struct group *group_of(struct groups *groups, uint32_t key)
{
    for (uint32_t i = 0; i < groups->count; i++)
        if (groups->group[i].key == key)
            return &groups->group[i];
    if (groups->count == MOST_GROUPS)
        return NULL;
    groups->group[groups->count].key = key;
    return &groups->group[groups->count++];
}

static void add_longest(const struct ensio_cell *cell, void *state)
{
    struct group *group = group_of(state, (uint32_t)cell->call << 8 | cell->size_class);
    for (uint32_t i = 0; group && i < ENSIO_LARGEST && i < cell->count; i++) {
        struct ensio_event *event = (struct ensio_event *)&cell->largest[i];
        uint32_t at = 0;
        if (group->count < ENSIO_LARGEST) {
            at = group->count++;
        } else {
            for (uint32_t other = 1; other < ENSIO_LARGEST; other++)
                if (group->longest[other]->duration < group->longest[at]->duration)
                    at = other;
            if (event->duration <= group->longest[at]->duration)
                continue;
        }
        group->longest[at] = event;
        group->threads[at] = cell->threads[i];
    }
}

static struct ensio_window *add_to_window(struct ensio_window *window, struct ensio_event *event, uint16_t thread)
{
    if (!window || window->summarised >= ensio_window_slots(window)) {
        if (window)
            ensio_raw_unmap(window, window->bytes);
        window = ensio_window_make(ENSIO_WINDOW_EVENTS, FIRST_KEPT_BYTES);
        if (!window)
            return NULL;
        window->thread = thread;
    }
    struct ensio_event *slot = ensio_window_events(window) + window->summarised;
    *slot = *event;
    event->flags |= ENSIO_IS_EVENT;
    __atomic_store_n(&window->summarised, window->summarised + 1, __ATOMIC_RELEASE);
    return window;
}

void ensio_keep_longest_calls(void)
{
    struct groups *groups = ensio_settings.mode == ENSIO_TAIL ? ensio_raw_memory(sizeof *groups) : NULL;
    if (!groups)
        return;
    ensio_cells_each(add_longest, groups);
    for (uint32_t thread = 0; thread < ensio_spool->threads && thread <= UINT16_MAX; thread++) {
        struct ensio_window *window = NULL;
        for (uint32_t i = 0; i < groups->count * ENSIO_LARGEST; i++) {
            struct group *group = &groups->group[i / ENSIO_LARGEST];
            const uint32_t at = i % ENSIO_LARGEST;
            if (at < group->count && group->threads[at] == thread && !(group->longest[at]->flags & ENSIO_IS_EVENT)) {
                window = add_to_window(window, group->longest[at], (uint16_t)thread);
                if (!window)
                    break;
            }
        }
        if (window)
            ensio_raw_unmap(window, window->bytes);
    }
    ensio_raw_unmap(groups, sizeof *groups);
}
