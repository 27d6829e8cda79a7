#include "collector_state.h"

#include <core/private_files.h>
#include <core/rawsys.h>
#include <spool/spool.h>

static struct ensio_collection *const state = &ensio_collection;

struct reading {
    int64_t (*what)(void *state);
    void *state;
};

static int64_t read_by(void *given)
{
    const struct reading *reading = given;
    state->spool_fd = ensio_spool_open();
    if (state->spool_fd < 0)
        return state->spool_fd;
    const int64_t result = reading->what(reading->state);
    ensio_raw_close(state->spool_fd);
    state->spool_fd = -1;
    return result;
}

int64_t ensio_collection_read_by(int64_t (*what)(void *state), void *given)
{
    struct reading reading = {what, given};
    return ensio_unshared(read_by, &reading);
}

int64_t ensio_collection_read(void *to, uint64_t bytes, uint64_t position)
{
    uint64_t done = 0;
    while (done < bytes) {
        const long got = ENSIO_RAW(SYS_pread64, state->spool_fd, (uint8_t *)to + done, bytes - done, position + done);
        if (got == -EINTR)
            continue;
        if (got < 0)
            return got;
        if (got == 0)
            break;
        done += (uint64_t)got;
    }
    return (int64_t)done;
}

uint32_t ensio_collection_contents(const struct ensio_job_window *window)
{
    static uint8_t buffer[4096]; /* the lock is held, or nobody else collects */
    const uint64_t end = window->position + window->window.bytes;
    uint64_t at = window->position;
    uint32_t number = 0;
    while (at < end) {
        const int64_t got = ensio_collection_read(buffer, end - at < sizeof buffer ? end - at : sizeof buffer, at);
        if (got <= 0)
            break;
        number = number * 31 + ensio_checksum(buffer, (uint64_t)got);
        at += (uint64_t)got;
    }
    return number;
}

/* Whether events lie in a window behind those that were taken. Slots are claimed in order: a page without any is the end. */
static int has_more_events(const struct ensio_job_window *window)
{
    static struct ensio_event behind[4096 / sizeof(struct ensio_event)];
    const uint64_t from = window->position + ENSIO_WINDOW_HEADER_BYTES + window->taken * sizeof *behind;
    const uint64_t left = window->position + window->window.bytes - from;
    const int64_t got = ensio_collection_read(behind, left < sizeof behind ? left : sizeof behind, from);
    for (int64_t i = 0; i < got / (int64_t)sizeof *behind; i++)
        if (behind[i].call)
            return 1;
    return got < 0;
}

/* Whether a window holds what was not taken; `known`: it is the one of that number. */
static int is_more(const struct ensio_job_window *now, int known, uint64_t number)
{
    if (now->window.kind == ENSIO_WINDOW_EVENTS)
        return has_more_events(known ? ensio_collection_window(number) : now);
    return !known || ensio_collection_contents(now) != ((uint32_t *)(void *)state->contents.bytes)[number];
}

/* Whether calls were added to the summary after it was collected. Where it was not, its events tell. */
static int is_more_summary(const struct ensio_job_window *now)
{
    return ensio_collection_has_summary() && now->window.kind == ENSIO_WINDOW_CELLS && now->window.summarised > 0 &&
           now->position >= ensio_collection.head.allocated_bytes;
}

static int64_t is_unchanged(void *unused)
{
    uint64_t texts_now = ensio_spool->text_bytes, next = 0;
    for (uint64_t position = ENSIO_SPOOL_BYTES; position < ensio_spool->allocated_bytes;) {
        struct ensio_job_window now = {.position = position};
        if (ensio_collection_read(&now.window, sizeof now.window, position) != sizeof now.window)
            return 0;
        if (now.window.magic != ENSIO_WINDOW_MAGIC) {
            position += ENSIO_WINDOW_UNIT_BYTES;
            continue;
        }
        position += now.window.bytes;
        if (ensio_collection_is_summary(now.window.kind)) {
            if (is_more_summary(&now))
                return 0;
            continue;
        }
        const int known = next < ensio_collection_windows() && ensio_collection_window(next)->position == now.position;
        if (now.window.kind == ENSIO_WINDOW_TEXT)
            texts_now += now.window.text_bytes;
        else if (is_more(&now, known, next))
            return 0;
        next += (uint64_t)known;
    }
    return texts_now == state->text_bytes;
}

int ensio_collected(void)
{
    if (!state->in_job_file || state->in_job_file != ensio_spool_number ||
        ensio_spool->dropped_events != state->head.dropped_events ||
        ensio_spool->lost_calls != state->head.lost_calls ||
        ensio_spool->unrecorded_children != state->head.unrecorded_children)
        return 0;
    return ensio_collection_read_by(is_unchanged, NULL) == 1;
}
