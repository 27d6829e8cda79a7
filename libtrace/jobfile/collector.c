#include "collector_state.h"

#include <core/lock.h>
#include <core/private_files.h>
#include <core/rawsys.h>
#include <core/recorder.h>
#include <files/flights.h>
#include <spool/process_facts.h>
#include <spool/spool.h>
#include <summary/cells.h>
#include <summary/keep_slowest.h>
#include <surroundings/account.h>
#include <surroundings/sample.h>
#include <threads/thread.h>
#include <threads/windows.h>

#include <string.h>

#define BLOB_BYTES (256U << 10) /* bytes of a window without events that are coded at a time */
#define MOST_TEXT_BYTES (64U << 20)
#define MOST_KEPT_BYTES (256U << 20)

struct ensio_collector ensio_collector = {.spool_fd = -1};

static struct ensio_collector *const state = &ensio_collector;

static uint32_t piece_used;
static uint64_t first_unplaced; /* first piece of data without a position in the job file */
static uint64_t next_window, next_kept;
static uint64_t next_block; /* bytes of blocks of the window that are taken */

static int add_texts(uint64_t position, uint32_t bytes)
{
    void *to = state->texts.used + bytes <= MOST_TEXT_BYTES ? ensio_array_room(&state->texts, bytes) : NULL;
    if (!to || ensio_collector_read(to, bytes, position) != bytes)
        return -1;
    state->texts.used += bytes;
    return 0;
}

static int add_summary(const struct ensio_job_window *window)
{
    void *to = ensio_array_room(&state->summary, sizeof *window);
    if (!to)
        return -1;
    memcpy(to, window, sizeof *window);
    state->summary.used += sizeof *window;
    return 0;
}

/* Finds the windows of the spool and reads its texts. */
static int find_windows(void)
{
    if (add_texts(ENSIO_SPOOL_TEXT_BYTES, state->head.text_bytes) != 0)
        return -1;
    for (uint64_t position = ENSIO_SPOOL_BYTES; position < state->head.allocated_bytes;) {
        struct ensio_job_window *found = ensio_array_room(&state->windows, sizeof *found);
        if (!found)
            return -1;
        *found = (struct ensio_job_window){.position = position};
        if (ensio_collector_read(&found->window, sizeof found->window, position) != sizeof found->window)
            return -1;
        if (found->window.magic != ENSIO_WINDOW_MAGIC) {
            position += ENSIO_WINDOW_UNIT_BYTES; /* the hole before a large window */
            continue;
        }
        position += found->window.bytes;
        if (ensio_collector_is_summary(found->window.kind)) {
            if (add_summary(found) != 0)
                return -1;
        } else if (found->window.kind != ENSIO_WINDOW_TEXT)
            state->windows.used += sizeof *found;
        else if (add_texts(found->position + ENSIO_WINDOW_HEADER_BYTES, found->window.text_bytes) != 0)
            return -1;
    }
    return 0;
}

static int is_scratch(const struct ensio_job_window *window)
{
    return window->window.kind == ENSIO_WINDOW_SCRATCH;
}

/* A checksum of the contents of a window. */
static uint32_t contents_of(const struct ensio_job_window *window)
{
    static uint8_t buffer[4096]; /* the lock is held, or no other thread collects */
    const uint64_t end = window->position + window->window.bytes;
    uint64_t at = window->position;
    uint32_t number = 0;
    while (at < end) {
        const int64_t got = ensio_collector_read(buffer, end - at < sizeof buffer ? end - at : sizeof buffer, at);
        if (got <= 0)
            break;
        number = number * 31 + ensio_checksum(buffer, (uint64_t)got);
        at += (uint64_t)got;
    }
    return number;
}

/* Whether a scratch window holds events that are not yet in the summary: 1, 0, or minus an errno. */
static int on_its_way(const struct ensio_job_window *window)
{
    static struct ensio_event events[4096 / sizeof(struct ensio_event)];
    const uint64_t end = window->position + window->window.bytes;
    uint64_t at = window->position + ENSIO_WINDOW_HEADER_BYTES + window->window.summarised * sizeof *events;
    for (; at + sizeof *events <= end; at += sizeof events) {
        const int64_t got = ensio_collector_read(events, end - at < sizeof events ? end - at : sizeof events, at);
        if (got < 0)
            return (int)got;
        for (int64_t i = 0; i < got / (int64_t)sizeof *events; i++)
            if (events[i].call)
                return 1;
    }
    return 0;
}

/* Other threads keep writing to these windows, so they are copied while the lock is held. */
static int keep_contents(void)
{
    for (uint64_t i = 0; i < ensio_collector_windows(); i++) {
        const struct ensio_job_window *window = ensio_collector_window(i);
        const int is_left_out = ensio_collector_holds_events(window) || is_scratch(window);
        const uint64_t bytes = is_left_out ? 0 : window->window.bytes - ENSIO_WINDOW_HEADER_BYTES;
        uint32_t *number = ensio_array_room(&state->contents, sizeof *number);
        void *to = state->kept.used + bytes <= MOST_KEPT_BYTES ? ensio_array_room(&state->kept, bytes) : NULL;
        if (!number || (bytes && !to) ||
            ensio_collector_read(to, bytes, window->position + ENSIO_WINDOW_HEADER_BYTES) != (int64_t)bytes)
            return -1;
        if (is_scratch(window) && on_its_way(window))
            return -1;
        *number = is_left_out ? 0 : contents_of(window);
        state->contents.used += sizeof *number;
        state->kept.used += bytes;
    }
    state->text_bytes = state->texts.used;
    return 0;
}

static int64_t take_contents(void *unused)
{
    return find_windows() == 0 && keep_contents() == 0 ? 0 : -ENOMEM;
}

/* A forked child finds what its parent collected. */
static void begin_anew(void)
{
    ensio_array_free(&state->windows);
    ensio_array_free(&state->contents);
    next_window = next_kept = next_block = 0;
    state->failed = 0;
}

int ensio_collect_begin(void)
{
    struct ensio_held held = ensio_lock();
    int begun = -ENOENT;
    begin_anew();
    if (ensio_spool) {
        ensio_windows_stay = 1;
        ensio_thread_settle(&ensio_thread);
        /* Afterwards all stored events are in the summary. */
        ensio_windows_drain(0);
        ensio_keep_longest_calls();
        ensio_surroundings_end();
        ensio_spool_touch();
        ensio_losses_store();
        ensio_account_take();
        ensio_account_store();
        ensio_flights_store();
        state->head = *ensio_spool;
        if (ensio_collector_has_summary())
            ensio_cells_close();
        begun = (int)ensio_collector_read_by(take_contents, NULL);
    }
    ensio_unlock(held);
    if (begun != 0)
        return begun;
    /* Without a job file the process would have left its spool; a reader of the job file finds none, so the process
     * ended in order. */
    state->head.state = ENSIO_STATE_ENDED;
    state->work = ensio_raw_memory(sizeof(struct ensio_work));
    return state->work ? 0 : -ENOMEM;
}

const uint8_t *ensio_collect_texts(uint32_t *length)
{
    *length = (uint32_t)state->texts.used;
    return state->texts.bytes;
}

static int add_data(uint32_t bytes, uint32_t count)
{
    struct ensio_job_data *added = ensio_array_room(&state->data, sizeof *added);
    if (!added)
        return -1;
    *added = (struct ensio_job_data){.position = piece_used, .bytes = bytes, .count = count};
    state->data.used += sizeof *added;
    piece_used += bytes;
    return 0;
}

/* An event that was for the summary only has left its slot empty. */
static int is_emptied(const struct ensio_event *event)
{
    return !event->call && event->flags & ENSIO_SUMMED_ONLY;
}

/* The number of slots at the beginning that are done with: those behind them may not be taken. */
static uint32_t whole_slots(const struct ensio_event *events, uint32_t count)
{
    uint32_t whole = 0;
    while (whole < count && (events[whole].call || is_emptied(&events[whole])))
        whole++;
    return whole;
}

/* The number of slots that hold the first `wanted` events, and emptied slots behind them. */
static uint32_t slots_of_events(const struct ensio_event *events, uint32_t slots, uint32_t wanted)
{
    uint32_t slot = 0;
    for (; slot < slots && (wanted || is_emptied(&events[slot])); slot++)
        wanted -= !is_emptied(&events[slot]);
    return slot;
}

/* Moves events to the front: their number. */
static uint32_t without_emptied(struct ensio_event *events, uint32_t slots)
{
    uint32_t kept = 0;
    while (kept < slots && events[kept].call)
        kept++;
    for (uint32_t slot = kept; slot < slots; slot++)
        if (!is_emptied(&events[slot]))
            events[kept++] = events[slot];
    return kept;
}

/* Takes the next block of a window that was coded before: 1, or -1. */
static int take_block(struct ensio_job_window *window)
{
    const uint64_t position = window->position + ENSIO_BLOCKS_BYTES + next_block;
    uint8_t *const to = state->work->piece + piece_used;
    struct ensio_block block;
    if (ensio_collector_read(&block, sizeof block, position) != sizeof block)
        return -1;
    const uint32_t bytes = ensio_block_bytes(&block);
    if (bytes > ENSIO_MOST_BLOCK_BYTES || ensio_collector_read(to, bytes, position) != bytes ||
        add_data(bytes, block.events) != 0)
        return -1;
    next_block += bytes;
    window->taken += block.events;
    window->data++;
    return 1;
}

/* Codes the next block of a window; 0 when there are no more. */
static int take_events(struct ensio_job_window *window)
{
    if (window->taken < window->window.coded)
        return take_block(window);
    const uint32_t slot = window->taken - window->window.coded;
    const uint64_t position = window->position + ENSIO_WINDOW_HEADER_BYTES + slot * sizeof(struct ensio_event);
    const uint32_t left = ensio_window_slots(&window->window) - slot;
    uint32_t count = left < ENSIO_BLOCK_EVENTS ? left : ENSIO_BLOCK_EVENTS;
    if (count > window->window.summarised - slot) /* events that are not in the summary stay in the spool */
        count = window->window.summarised - slot;
    const int64_t got = ensio_collector_read(state->work->events, count * sizeof(struct ensio_event), position);
    if (got < 0)
        return -1;
    const uint32_t slots = whole_slots(state->work->events, (uint32_t)((uint64_t)got / sizeof(struct ensio_event)));
    if (!slots)
        return 0;
    /* While the kernel copies an event, another thread may complete it, so that its first members are missing in the
     * copy. */
    const int64_t bytes = (int64_t)(slots * sizeof(struct ensio_event));
    if (state->head.threads > 1 && ensio_collector_read(state->work->events, (uint64_t)bytes, position) != bytes)
        return -1;
    const uint32_t all = count = without_emptied(state->work->events, slots);
    if (!all) {
        window->taken += slots;
        return 1;
    }
    const uint32_t coded =
        ensio_encode_events(&state->work->encoder, state->work->events, &count, state->work->piece + piece_used);
    if (add_data(coded, count) != 0)
        return -1;
    window->data++;
    if (count == all)
        window->taken += slots;
    else if (ensio_collector_read(state->work->events, (uint64_t)bytes, position) == bytes)
        window->taken += slots_of_events(state->work->events, slots, count);
    else
        return -1;
    return 1;
}

/* Codes the next part of a window without events. */
static int take_bytes(struct ensio_job_window *window)
{
    const uint64_t all = is_scratch(window) ? 0 : window->window.bytes - ENSIO_WINDOW_HEADER_BYTES;
    const uint64_t left = all - window->taken;
    const uint32_t bytes = left < BLOB_BYTES ? (uint32_t)left : BLOB_BYTES;
    if (!bytes)
        return 0;
    const uint32_t coded = ensio_encode_summed_text(&state->work->encoder, state->kept.bytes + next_kept, 0, bytes,
                                                    state->work->piece + piece_used, ENSIO_MOST_BLOCK_BYTES);
    if (!coded || add_data(coded, bytes) != 0)
        return -1;
    next_kept += bytes;
    window->taken += bytes;
    window->data++;
    return 1;
}

static int64_t take_piece(void *unused)
{
    while (next_window < ensio_collector_windows() && piece_used < ENSIO_PIECE_BYTES && !state->failed) {
        struct ensio_job_window *window = ensio_collector_window(next_window);
        const int taken = ensio_collector_holds_events(window) ? take_events(window) : take_bytes(window);
        state->failed |= taken < 0;
        next_window += taken == 0;
        next_block = taken == 0 ? 0 : next_block;
    }
    return 0;
}

const uint8_t *ensio_collect_piece(uint32_t *length)
{
    piece_used = 0;
    first_unplaced = state->data.used / sizeof(struct ensio_job_data);
    if (next_window < ensio_collector_windows()) {
        struct ensio_held held = ensio_lock();
        state->failed |= ensio_collector_read_by(take_piece, NULL) != 0;
        ensio_unlock(held);
    }
    *length = state->failed ? 0 : piece_used;
    return state->work->piece;
}

void ensio_collect_placed(uint64_t position)
{
    struct ensio_job_data *all = (struct ensio_job_data *)(void *)state->data.bytes;
    for (uint64_t i = first_unplaced; i < state->data.used / sizeof *all; i++)
        all[i].position += position;
}

/* Keeps what was taken of each window, if the job file is complete. */
void ensio_collect_end(int written)
{
    struct ensio_held held = ensio_lock();
    if (state->work)
        ensio_raw_unmap(state->work, sizeof(struct ensio_work));
    state->work = NULL;
    ensio_array_free(&state->texts);
    ensio_array_free(&state->data);
    ensio_array_free(&state->record);
    ensio_array_free(&state->kept);
    ensio_array_free(&state->summary);
    ensio_array_free(&state->calls);
    if (!written) {
        ensio_array_free(&state->windows);
        ensio_array_free(&state->contents);
    }
    state->in_job_file = written ? ensio_spool_number : 0;
    ensio_unlock(held);
}

static void append(const void *bytes, uint64_t length)
{
    if (length)
        memcpy(state->record.bytes + state->record.used, bytes, length);
    state->record.used += length;
}

/* Codes the texts after the shared texts, so that copies of shared parts are found. */
static int code_texts(const uint8_t *shared, uint32_t shared_bytes, uint8_t *to, uint32_t room)
{
    const uint32_t own = (uint32_t)state->texts.used;
    struct ensio_array both = {0};
    if (!own)
        return 0;
    const uint8_t *all = state->texts.bytes;
    if (shared_bytes) {
        uint8_t *joined = ensio_array_room(&both, (uint64_t)shared_bytes + own);
        if (!joined)
            return -1;
        memcpy(joined, shared, shared_bytes);
        memcpy(joined + shared_bytes, all, own);
        all = joined;
    }
    const uint32_t coded = ensio_encode_summed_text(&state->work->encoder, all, shared_bytes, own, to, room);
    ensio_array_free(&both);
    return coded ? (int)coded : -1;
}

const uint8_t *ensio_collect_copy(const uint8_t *shared, uint32_t shared_bytes, uint32_t *length)
{
    struct ensio_job_process process; /* the first one, which leans on nothing */
    memcpy(&process, state->record.bytes, sizeof process);
    *length = process.coded_bytes;
    if (process.text_bytes == shared_bytes)
        return state->record.bytes + process.bytes - process.coded_bytes;
    *length =
        ensio_encode_summed_text(&state->work->encoder, shared, 0, shared_bytes, state->work->piece, ENSIO_PIECE_BYTES);
    return state->work->piece;
}

const uint8_t *ensio_collect_record(const uint8_t *shared, uint32_t shared_bytes, uint32_t *length)
{
    const char *name = ensio_spool_name();
    const uint64_t name_bytes = strlen(name), text_room = state->texts.used + state->texts.used / 4 + 64;
    const uint64_t most = sizeof(struct ensio_job_process) + name_bytes + text_room + state->windows.used +
                          state->data.used + state->calls.used;
    state->record.used = 0;
    if (state->failed || most > UINT32_MAX / 4 || !ensio_array_room(&state->record, most))
        return NULL;
    struct ensio_job_process process = {
        .magic = ENSIO_JOB_PROCESS_MAGIC,
        .name_bytes = (uint32_t)name_bytes,
        .text_bytes = (uint32_t)state->texts.used,
        .windows = (uint32_t)ensio_collector_windows(),
        .data = (uint32_t)(state->data.used / sizeof(struct ensio_job_data)),
        .calls = (uint32_t)(state->calls.used / sizeof(struct ensio_job_call)),
        .summarised = (uint32_t)ensio_collector_has_summary(),
        .spool = state->head,
    };
    state->record.used = sizeof process;
    append(name, name_bytes);
    append(state->windows.bytes, state->windows.used);
    append(state->data.bytes, state->data.used);
    append(state->calls.bytes, state->calls.used);
    const uint64_t summed = state->record.used;
    const int coded = code_texts(shared, shared_bytes, state->record.bytes + state->record.used, (uint32_t)text_room);
    if (coded < 0)
        return NULL;
    state->record.used += (uint64_t)coded;
    process.coded_bytes = (uint32_t)coded;
    process.bytes = *length = (uint32_t)state->record.used;
    memcpy(state->record.bytes, &process, sizeof process);
    const uint64_t before = offsetof(struct ensio_job_process, name_bytes);
    process.checksum = ensio_checksum(state->record.bytes + before, summed - before);
    memcpy(state->record.bytes, &process, sizeof process);
    return state->record.bytes;
}

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

int64_t ensio_collector_read_by(int64_t (*what)(void *state), void *given)
{
    struct reading reading = {what, given};
    return ensio_with_private_files(read_by, &reading);
}

int64_t ensio_collector_read(void *to, uint64_t bytes, uint64_t position)
{
    uint64_t done = 0;
    while (done < bytes) {
        const long got = ensio_raw_read_at(state->spool_fd, (uint8_t *)to + done, bytes - done, position + done);
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

/* Whether a window holds events after those that were taken. Slots are claimed in order, so a page without events is
 * the end. */
static int has_more_events(const struct ensio_job_window *window)
{
    static struct ensio_event behind[4096 / sizeof(struct ensio_event)];
    const uint32_t slot = window->taken - window->window.coded;
    const uint64_t from = window->position + ENSIO_WINDOW_HEADER_BYTES + slot * sizeof *behind;
    const uint64_t left = (ensio_window_slots(&window->window) - slot) * sizeof *behind;
    const int64_t got = ensio_collector_read(behind, left < sizeof behind ? left : sizeof behind, from);
    for (int64_t i = 0; i < got / (int64_t)sizeof *behind; i++)
        if (behind[i].call)
            return 1;
    return got < 0;
}

/* Whether a window holds more than was taken; `known`: it is window `number` of the collection. */
static int is_more(const struct ensio_job_window *now, int known, uint64_t number)
{
    if (ensio_collector_holds_events(now))
        return has_more_events(known ? ensio_collector_window(number) : now);
    if (is_scratch(now))
        return !known || on_its_way(now);
    return !known || contents_of(now) != ((uint32_t *)(void *)state->contents.bytes)[number];
}

/* Whether calls were added to the summary after it was collected. A summary that was not collected follows from its
 * events. */
static int is_more_summary(const struct ensio_job_window *now)
{
    return ensio_collector_has_summary() && now->window.kind == ENSIO_WINDOW_CELLS && now->window.summarised > 0 &&
           now->position >= ensio_collector.head.allocated_bytes;
}

static int64_t is_unchanged(void *unused)
{
    uint64_t texts_now = ensio_spool->text_bytes, next = 0;
    for (uint64_t position = ENSIO_SPOOL_BYTES; position < ensio_spool->allocated_bytes;) {
        struct ensio_job_window now = {.position = position};
        if (ensio_collector_read(&now.window, sizeof now.window, position) != sizeof now.window)
            return 0;
        if (now.window.magic != ENSIO_WINDOW_MAGIC) {
            position += ENSIO_WINDOW_UNIT_BYTES;
            continue;
        }
        position += now.window.bytes;
        if (ensio_collector_is_summary(now.window.kind)) {
            if (is_more_summary(&now))
                return 0;
            continue;
        }
        const int known = next < ensio_collector_windows() && ensio_collector_window(next)->position == now.position;
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
    return state->in_job_file && state->in_job_file == ensio_spool_number;
}

int ensio_is_in_job_file(void)
{
    if (!ensio_collected() || ensio_spool->dropped_events != state->head.dropped_events ||
        ensio_spool->lost_calls != state->head.lost_calls ||
        ensio_spool->unrecorded_children != state->head.unrecorded_children)
        return 0;
    return ensio_collector_read_by(is_unchanged, NULL) == 1;
}
