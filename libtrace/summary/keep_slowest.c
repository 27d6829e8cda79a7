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

int ensio_keep_slowest(struct ensio_cursor *cursor, const struct ensio_event *event)
{
    if ((!cursor->kept || cursor->kept->summarised >= ensio_window_slots(cursor->kept)) && new_window(cursor) != 0)
        return -1;
    struct ensio_window *kept = cursor->kept;
    struct ensio_event *slot = ensio_window_events(kept) + kept->summarised;
    uint16_t call = event->call;
    *slot = (struct ensio_event){
        event->start, event->duration, event->offset, event->requested, event->moved, event->file, 0,
        event->depth, event->flags};
    __atomic_store_n(&slot->call, call, __ATOMIC_RELEASE);
    __atomic_store_n(&kept->summarised, kept->summarised + 1, __ATOMIC_RELEASE);
    return 0;
}
