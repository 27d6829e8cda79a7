#include "windows.h"

#include "thread.h"

#include <core/lock.h>
#include <core/rawsys.h>
#include <core/settings.h>
#include <core/recorder.h>
#include <spool/encode.h>
#include <spool/spool.h>
#include <summary/cells.h>
#include <summary/drain.h>
#include <time/clock.h>

#include <string.h>

/* First windows are small, because most threads make few calls; that of a process's first thread is larger. Each
 * further one is four times as large. Windows of events grow up to a size that the kernel backs by large pages, so that
 * first touches cost little; scratch windows grow up to a size that stays in the processor's cache. */
#define FIRST_WINDOW_BYTES 65536
#define OTHER_FIRST_WINDOW_BYTES 4096
#define LARGEST_WINDOW_BYTES (2 << 20)
#define LARGEST_SMALL_BYTES (1 << 20)
#define LARGEST_SCRATCH_BYTES 65536
#define GROWTH 4
#define RESERVE_BYTES 16384

#define RETRY_TICKS (1ULL << 21) /* about a millisecond */

/* A thread's mapped windows of events may take a MiB, and a few threads that make most of the calls may take more. If
 * many threads make many calls, not all of them get the largest windows. */
#define MAPPED_BYTES (3U << 20)
#define MAPPED_BYTES_OF_THREAD (1U << 20)
static uint64_t mapped_bytes;

int ensio_windows_stay;

/* Unused scratch windows, linked through their first slots, which are empty. Without this list, each short-lived thread
 * would leave a window behind in the file. */
static struct ensio_window *free_windows;

static int is_scratch(const struct ensio_window *window)
{
    return window->kind == ENSIO_WINDOW_SCRATCH;
}

static struct ensio_window **next_free(struct ensio_window *window)
{
    return (struct ensio_window **)(void *)&ensio_window_events(window)->start;
}

static void let_go(struct ensio_window *window)
{
    if (is_scratch(window) && window->summarised == 0) {
        *next_free(window) = free_windows;
        free_windows = window;
        return;
    }
    if (!is_scratch(window))
        mapped_bytes -= window->bytes;
    ensio_raw_unmap(window, window->bytes);
}

static struct ensio_window *take_free(uint64_t least, uint64_t most)
{
    struct ensio_window **at = &free_windows, *found;
    while ((found = *at) != NULL && (found->bytes < least || found->bytes > most))
        at = next_free(found);
    if (found)
        *at = *next_free(found);
    return found;
}

/* Private memory, if the file has no room even for this. */
static struct ensio_window *private_window(void)
{
    struct ensio_window *window = ensio_raw_memory(OTHER_FIRST_WINDOW_BYTES);
    if (!window)
        return NULL;
    window->kind = ENSIO_WINDOW_SCRATCH;
    window->bytes = OTHER_FIRST_WINDOW_BYTES;
    return window;
}

static struct ensio_window *scratch_window(uint64_t bytes)
{
    struct ensio_window *window = take_free(bytes, bytes);
    if (!window)
        window = ensio_window_make(ENSIO_WINDOW_SCRATCH, bytes);
    if (!window)
        window = take_free(0, UINT64_MAX);
    return window ? window : private_window();
}

/* All events of a scratch window are in the summary, and its slots are empty. */
static void empty(struct ensio_window *window)
{
    __atomic_store_n(&window->summarised, 0, __ATOMIC_RELEASE);
}

/* In a forked child, the state of a thread that has not made a call there yet describes the parent. */
static int is_ours(const struct ensio_thread *thread)
{
    return thread->cursor && (thread->suppressed || thread->generation == ensio_process->generation);
}

/* A store that a signal handler interrupted may have completed since. */
static void drain_retired(struct ensio_thread *thread)
{
    struct ensio_window *now = thread->cursor->window, *retired = thread->retired;
    thread->cursor->window = retired;
    ensio_drain(thread->cursor, ensio_window_slots(retired), 0);
    thread->cursor->window = now;
    if (is_scratch(retired))
        empty(retired);
    let_go(retired);
    thread->retired = NULL;
}

int ensio_window_drain(struct ensio_thread *thread, int interrupted)
{
    if (!is_ours(thread) || !thread->window)
        return 1;
    uint32_t filled = thread->next < thread->capacity ? thread->next : thread->capacity;
    const int whole = ensio_drain(thread->cursor, filled, interrupted);
    if (thread->retired && !interrupted)
        drain_retired(thread);
    return whole;
}

void ensio_windows_drain(int interrupted)
{
    if (!ensio_spool)
        return;
    ensio_window_drain(&ensio_thread, interrupted);
    ensio_drain_others(ensio_thread.cursor);
}

static uint64_t next_size(uint64_t before, uint64_t largest)
{
    uint64_t first = ensio_spool->threads ? OTHER_FIRST_WINDOW_BYTES : FIRST_WINDOW_BYTES;
    uint64_t bytes = before ? GROWTH * before : first;
    return bytes < largest ? bytes : largest;
}

/* The end of the part of a window that begins at slot `first`. Events are added to the summary while they are still in
 * the cache: a window is filled in parts and drained after each. */
static uint32_t part_end(uint32_t first, uint32_t slots)
{
    return slots - first < ENSIO_PART_EVENTS ? slots : first + ENSIO_PART_EVENTS;
}

/* The offset in a window of slot `slot`. */
static uint64_t end_of(uint32_t slot)
{
    return ENSIO_WINDOW_HEADER_BYTES + (uint64_t)slot * sizeof(struct ensio_event);
}

static struct ensio_window *events_window(struct ensio_cursor *cursor)
{
    if (ensio_settings.mode != ENSIO_TRACE || (cursor->events_due && ensio_ticks() < cursor->events_due))
        return NULL;
    /* a reserve for the time without space */
    if (!free_windows && !cursor->window && !ensio_spool->threads) {
        struct ensio_window *reserve = ensio_window_make(ENSIO_WINDOW_SCRATCH, RESERVE_BYTES);
        if (reserve)
            let_go(reserve);
    }
    uint64_t bytes = next_size(cursor->events_bytes, LARGEST_WINDOW_BYTES);
    uint64_t others = mapped_bytes - (cursor->window && !is_scratch(cursor->window) ? cursor->window->bytes : 0);
    if (bytes > LARGEST_SMALL_BYTES && others + bytes > MAPPED_BYTES + ensio_cursor_count() * MAPPED_BYTES_OF_THREAD)
        bytes = LARGEST_SMALL_BYTES;
    const uint16_t kind = cursor->uncoded || bytes < FIRST_WINDOW_BYTES ? ENSIO_WINDOW_EVENTS : ENSIO_WINDOW_CODED;
    struct ensio_window *window = ensio_window_begin(kind, bytes, end_of(part_end(0, UINT32_MAX)));
    cursor->events_due = window ? 0 : ensio_ticks() + RETRY_TICKS;
    if (window) {
        if (window->bytes < FIRST_WINDOW_BYTES)
            window->kind = ENSIO_WINDOW_EVENTS;
        cursor->coded_end = ENSIO_BLOCKS_BYTES;
        cursor->events_bytes = window->bytes;
        mapped_bytes += window->bytes;
    }
    return window;
}

/* Makes a window the thread's current one; its slots are filled from `first` on. */
static void use(struct ensio_thread *thread, struct ensio_window *window, uint32_t first)
{
    uint32_t slots = ensio_window_slots(window);
    ensio_thread_number(thread);
    if (thread->window != window) { /* the next part of the same window needs no system call */
        window->thread = (uint16_t)thread->number;
        window->tid = (uint32_t)syscall(SYS_gettid);
    }
    thread->window = thread->cursor->window = window;
    thread->slots = ensio_window_events(window);
    thread->next = first;
    thread->capacity = part_end(first, slots);
}

/* Codes the events in the slots of a full window behind them, and empties the slots: 0, or -1 if the events stay. One
 * store says that they are in the block and no longer in the slots; a kill may come before or after it. */
static int code_part(struct ensio_thread *thread, int whole)
{
    static struct {
        struct ensio_encoder encoder;
        uint8_t block[ENSIO_MOST_BLOCK_BYTES];
    } * coder;
    struct ensio_window *window = thread->window;
    struct ensio_event *events = ensio_window_events(window);
    struct ensio_cursor *cursor = thread->cursor;
    uint32_t filled = 0, count = ENSIO_PART_EVENTS, bytes = 0;
    if (window->kind != ENSIO_WINDOW_CODED)
        return -1;
    whole &= !ensio_windows_stay && (coder || (coder = ensio_raw_memory(sizeof *coder)));
    while (whole && filled < ENSIO_PART_EVENTS && events[filled].call)
        filled++;
    if (filled == ENSIO_PART_EVENTS)
        bytes = ensio_encode_events(&coder->encoder, events, &count, coder->block);
    cursor->uncoded |= !bytes || count < ENSIO_PART_EVENTS;
    const uint64_t from = cursor->coded_end, to = from + bytes;
    if (cursor->uncoded || to > window->bytes || ensio_window_populate(window, from, to) != 0)
        return -1;
    memcpy((char *)window + from, coder->block, bytes);
    cursor->coded_end = to;
    const union {
        uint32_t members[2];
        uint64_t both;
    } coded = {{ENSIO_CODED_SLOTS, window->coded + count}}, emptied = {{0, window->coded + count}};
    __atomic_store_n((uint64_t *)(void *)&window->summarised, coded.both, __ATOMIC_RELEASE);
    for (uint32_t i = 0; i < count; i++)
        __atomic_store_n((uint64_t *)(void *)&events[i].file, 0, __ATOMIC_RELAXED);
    __atomic_store_n((uint64_t *)(void *)&window->summarised, emptied.both, __ATOMIC_RELEASE);
    return 0;
}

/* Gives the thread slots to fill: 0, or -1 without space. `whole`: all events of its window are in the summary, and no
 * claimed slot is still empty. */
static int make_room(struct ensio_thread *thread, int whole, int interrupted)
{
    struct ensio_cursor *cursor = thread->cursor;
    struct ensio_window *old = thread->window;
    const uint32_t used = thread->capacity;
    if (old && code_part(thread, whole && !interrupted) == 0) {
        use(thread, old, 0);
        return 0;
    }
    if (old && !is_scratch(old) && used < ensio_window_slots(old) &&
        ensio_window_populate(old, end_of(used), end_of(part_end(used, ensio_window_slots(old)))) == 0) {
        use(thread, old, used);
        return 0;
    }
    struct ensio_window *window = events_window(cursor);
    if (!window && old && is_scratch(old) && whole && old->bytes >= LARGEST_SCRATCH_BYTES)
        window = old;
    if (!window)
        window = scratch_window(next_size(old && is_scratch(old) ? old->bytes : 0, LARGEST_SCRATCH_BYTES));
    if (!window && old && is_scratch(old) && whole)
        window = old;
    if (!window)
        return -1;
    if (old && is_scratch(old) && whole)
        empty(old);
    if (old && old != window) {
        if (whole || !interrupted)
            let_go(old);
        else if (!thread->retired)
            thread->retired = old;
    }
    use(thread, window, 0);
    thread->clock_due = 0; /* renews the clock reading as well */
    return 0;
}

/* Without space even for the summary, the event is counted as dropped, and space is requested only from time to
 * time. */
struct ensio_event *ensio_next_window(struct ensio_thread *thread)
{
    if (ensio_ticks() < thread->retry_due && ensio_spool) {
        thread->next = thread->capacity;
        ensio_spool_lose();
        return NULL;
    }
    struct ensio_held held = ensio_lock();
    struct ensio_event *event = NULL;
    int interrupted = thread->storing > 1, recorded = ensio_ensure_spool() == 0;
    if (recorded && !thread->cursor)
        thread->cursor = ensio_cursor_take();
    recorded = recorded && thread->cursor;
    if (recorded && !thread->window)
        ensio_cells_begin(); /* reserves space for the summary while there is some */
    /* A signal handler may have made room since the claim. */
    if (recorded && thread->next >= thread->capacity) {
        int whole = ensio_window_drain(thread, interrupted);
        recorded = make_room(thread, whole, interrupted) == 0;
    }
    if (recorded) {
        event = thread->slots + thread->next++;
    } else {
        thread->next = thread->capacity;
        thread->retry_due = ensio_ticks() + RETRY_TICKS;
        if (ensio_spool)
            ensio_spool_lose();
    }
    ensio_unlock(held);
    return event;
}

void ensio_windows_give_back(struct ensio_thread *thread)
{
    int interrupted = thread->storing > 0;
    if (!is_ours(thread))
        return;
    int whole = ensio_window_drain(thread, interrupted);
    if (thread->retired)
        drain_retired(thread);
    if (thread->window) {
        if (whole && is_scratch(thread->window))
            empty(thread->window);
        let_go(thread->window);
    }
    if (thread->cursor->kept)
        ensio_raw_unmap(thread->cursor->kept, thread->cursor->kept->bytes);
    ensio_cursor_release(thread->cursor);
    thread->cursor = NULL;
    thread->window = NULL;
    thread->next = thread->capacity = 0;
}

void ensio_windows_forget(void)
{
    free_windows = NULL;
    mapped_bytes = 0;
    ensio_windows_stay = 0;
    ensio_drain_forget();
}
