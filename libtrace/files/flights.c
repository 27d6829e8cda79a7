#include "flights.h"

#include <core/bounded_string.h>
#include <core/lock.h>
#include <core/rawsys.h>
#include <core/settings.h>
#include <spool/spool.h>

#include <stddef.h>
#include <string.h>

#define FIRST_WINDOW_BYTES 4096
#define LARGEST_WINDOW_BYTES 262144
#define WINDOW_GROWTH 4

_Thread_local uint64_t ensio_io_blocked;

static uint32_t requests;

/* The lock guards it. */
static struct {
    struct ensio_window *window;
    uint32_t used, capacity;
    uint32_t spool; /* number of the spool that it lies in */
} rows;

struct ensio_flying ensio_flight_begin(uint64_t start, uint8_t direction)
{
    return (struct ensio_flying){
        .start = start,
        .request = __atomic_add_fetch(&requests, 1, __ATOMIC_RELAXED),
        .poster = &ensio_thread,
        .site = ensio_site(&ensio_thread),
        .direction = direction,
    };
}

static uint64_t in_flight(const struct ensio_flying *flying)
{
    const uint64_t ticks = flying->completed > flying->start ? flying->completed - flying->start : 0;
    return ticks > flying->posted ? ticks : flying->posted;
}

/* Of the event of a completed request. A signal handler or another thread may observe completion before the call that
 * posted the request returns. */
static uint64_t duration_of(const struct ensio_flying *flying)
{
    return flying->posted ? flying->posted : in_flight(flying);
}

/* The thread that posted the request knows all its posts and waits since; another one only those of this request. */
static uint64_t hidden(const struct ensio_flying *flying, uint64_t flight)
{
    if (flying->idle)
        return 0;
    uint64_t covered = duration_of(flying);
    if (flying->poster == &ensio_thread && flying->posted)
        covered += ensio_io_blocked - flying->blocked;
    else
        covered += flying->wait;
    return flight > covered ? flight - covered : 0;
}

static struct ensio_flight_sums *sums_of(uint8_t direction)
{
    return direction == ENSIO_CARRIED_READ    ? &ensio_flights->read
           : direction == ENSIO_CARRIED_WRITE ? &ensio_flights->write
                                              : &ensio_flights->other;
}

static void add_to_sums(const struct ensio_flight *row, uint8_t direction)
{
    struct ensio_flight_sums *const sums = sums_of(direction);
    __atomic_fetch_add(&sums->flight, row->flight, __ATOMIC_RELAXED);
    __atomic_fetch_add(&sums->hidden, row->hidden, __ATOMIC_RELAXED);
    __atomic_fetch_add(&sums->wait, row->wait, __ATOMIC_RELAXED);
    __atomic_fetch_add(&sums->count, 1, __ATOMIC_RELAXED);
}

static int next_window(void)
{
    const uint64_t bytes = rows.window ? WINDOW_GROWTH * rows.window->bytes : FIRST_WINDOW_BYTES;
    struct ensio_window *window =
        ensio_window_make(ENSIO_WINDOW_FLIGHTS, bytes < LARGEST_WINDOW_BYTES ? bytes : LARGEST_WINDOW_BYTES);
    if (!window)
        return -1;
    if (rows.window)
        ensio_raw_unmap(rows.window, rows.window->bytes);
    rows.window = window;
    rows.used = 0;
    rows.capacity = (uint32_t)((window->bytes - ENSIO_WINDOW_HEADER_BYTES) / sizeof(struct ensio_flight));
    return 0;
}

/* The call number is stored last, as in every event. The parent's window stays mapped in a forked child. */
static void store(const struct ensio_flight *row)
{
    struct ensio_held held = ensio_lock();
    if (ensio_spool && rows.spool != ensio_spool_number) {
        rows.spool = ensio_spool_number;
        rows.window = NULL;
        rows.used = rows.capacity = 0;
    }
    if (ensio_spool && (rows.used < rows.capacity || next_window() == 0)) {
        struct ensio_flight *const to =
            (struct ensio_flight *)(void *)((char *)rows.window + ENSIO_WINDOW_HEADER_BYTES) + rows.used++;
        memcpy(to, row, offsetof(struct ensio_flight, call));
        __atomic_store_n(&to->call, row->call, __ATOMIC_RELEASE);
    } else if (ensio_spool) {
        ensio_flights->unlisted++;
    }
    ensio_unlock(held);
}

void ensio_flight_store(struct ensio_thread *thread, const struct ensio_flying *flying, uint16_t call, uint32_t file,
                        int64_t offset, uint64_t requested, int64_t moved, uint32_t depth)
{
    const uint32_t own_depth = thread->depth;
    const uintptr_t own_caller = thread->caller; /* of a call around this one, whose event is still to come */
    thread->depth = depth;
    thread->caller = flying->site ? flying->site : own_caller;
    ensio_store(thread, call, file, offset, requested, moved, flying->start, duration_of(flying));
    thread->depth = own_depth;
    thread->caller = own_caller;
}

void ensio_flight_end(struct ensio_thread *thread, const struct ensio_flying *flying, uint16_t call, uint32_t depth,
                      uint32_t flags)
{
    if (ensio_unwanted_calls[call] || !ensio_spool || !thread->window)
        return;
    const uint64_t flight = in_flight(flying);
    const struct ensio_flight row = {
        .start = flying->start,
        .flight = flight,
        .hidden = hidden(flying, flight),
        .wait_start = flying->wait_start,
        .wait = flying->wait,
        .request = flying->request,
        .flags = flags,
        .thread = (uint16_t)thread->number,
        .wait_thread = flying->wait_thread,
        .wait_call = flying->wait_call,
        .call = call,
    };
    if (!(uint8_t)depth && !(flags & ENSIO_FLIGHT_NOT_ASKED))
        add_to_sums(&row, flying->direction);
    if (ensio_settings.mode == ENSIO_TRACE)
        store(&row);
}

static void add_numbers(struct ensio_string *text, const struct ensio_flight_sums *sums)
{
    const uint64_t numbers[] = {sums->count, sums->flight, sums->hidden, sums->wait};
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        ensio_add_number(text, numbers[i]);
        ensio_add(text, " ");
    }
}

void ensio_flights_store(void)
{
    char text[512];
    struct ensio_string flights = ensio_string_in(text, sizeof text);
    ensio_add(&flights, "flights=");
    add_numbers(&flights, &ensio_flights->read);
    add_numbers(&flights, &ensio_flights->write);
    add_numbers(&flights, &ensio_flights->other);
    ensio_add_number(&flights, ensio_flights->unlisted);
    ensio_add_bytes(&flights, "", 1);
    if (ensio_flights->read.count || ensio_flights->write.count || ensio_flights->other.count ||
        ensio_flights->unlisted)
        ensio_text_store(ENSIO_TEXT_PROPERTIES, 0, text, flights.length);
}

void ensio_flights_forget(void)
{
    requests = 0;
}
