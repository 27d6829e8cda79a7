#include "adding.h"

#include "ordinals.h"
#include "rate.h"
#include "recorder.h"
#include "tail.h"

#include <calls/calls.h>
#include <ensio/bins.h>

/* 0, 1 for 1, 2 for 2 and 3, 3 for 4 to 7 ... */
static inline uint32_t bits_of(uint64_t value)
{
    return value ? 64U - (uint32_t)__builtin_clzll(value) : 0;
}

static inline uint64_t what_of(const struct ensio_event *event)
{
    return __atomic_load_n((const uint64_t *)(const void *)&event->file, __ATOMIC_ACQUIRE);
}

/* The class of an ordinal, and the first ordinal beyond it. */
static uint32_t ordinal_class(uint64_t ordinal, uint64_t *until)
{
    if (ordinal <= ENSIO_ORDINALS_APART) {
        *until = ordinal + 1;
        return (uint32_t)ordinal;
    }
    *until = 1ULL << bits_of(ordinal);
    return ENSIO_ORDINALS_APART + bits_of(ordinal) - bits_of(ENSIO_ORDINALS_APART) + 1;
}

static uint64_t not_counted; /* calls on files of which there are too many */

struct ensio_last ensio_no_last(void)
{
    return (struct ensio_last){.counter = &not_counted};
}

static void find_place(const struct ensio_event *event, struct ensio_last *last)
{
    uint32_t ordinal = ENSIO_ORDINAL_UNKNOWN;
    last->what = what_of(event);
    last->requested = event->requested;
    last->counter = ensio_ordinal_counter(event->file, ensio_call_ops[event->call & (ENSIO_CALLS - 1)]);
    if (last->counter) {
        ordinal = ordinal_class(*last->counter + 1, &last->until);
    } else {
        last->counter = &not_counted;
        last->until = UINT64_MAX;
    }
    last->place = ensio_cell_find(event->call, (uint8_t)bits_of(event->requested), (uint8_t)ordinal);
}

/* Of equals the earlier ones stay. */
static void keep_longest(struct ensio_place *place, const struct ensio_event *event, uint16_t thread)
{
    struct ensio_cell *cell = place->cell;
    uint32_t at = 0;
    if (cell->count <= ENSIO_LARGEST) {
        at = (uint32_t)cell->count - 1;
    } else {
        for (uint32_t i = 1; i < ENSIO_LARGEST; i++)
            if (cell->largest[i].duration < cell->largest[at].duration ||
                (cell->largest[i].duration == cell->largest[at].duration && cell->largest[i].start > cell->largest[at].start))
                at = i;
    }
    cell->largest[at] = *event;
    cell->threads[at] = thread;
    if (cell->count >= ENSIO_LARGEST) {
        place->least = cell->largest[0].duration;
        for (uint32_t i = 1; i < ENSIO_LARGEST; i++)
            if (cell->largest[i].duration < place->least)
                place->least = cell->largest[i].duration;
    }
}

static void add_first(struct ensio_cell *cell, const struct ensio_event *event, uint64_t ns)
{
    cell->shift_ns = cell->min_ns = cell->max_ns = ns;
    cell->min_requested = cell->max_requested = event->requested;
    cell->first_start = event->start;
}

/* The flag that says that a call around one of this kind counts its bytes. */
static uint8_t carried_flag(uint16_t call)
{
    const uint8_t op = ensio_call_ops[call & (ENSIO_CALLS - 1)];
    return op == ENSIO_OP_READ ? ENSIO_CARRIED_READ : op == ENSIO_OP_WRITE ? ENSIO_CARRIED_WRITE : 0;
}

/* What most calls have nothing of. */
static void add_nesting(struct ensio_cell *cell, struct ensio_fold *fold, const struct ensio_event *event, uint64_t ns)
{
    struct ensio_window *window = fold->window;
    if (fold->nesting.depths)
        cell->inner_ns += ensio_inner_ns(&fold->nesting, event, ensio_window_events(window), window->rate);
    if (!event->depth)
        return;
    ensio_wait_for_outer(&fold->nesting, event, ns);
    cell->nested_count++;
    cell->nested_ns += ns;
    if (event->moved > 0 && event->flags & carried_flag(event->call))
        cell->carried_moved += (uint64_t)event->moved;
}

static inline void add_to_cell(struct ensio_place *place, struct ensio_fold *fold, const struct ensio_event *event, uint64_t ns)
{
    struct ensio_cell *cell = place->cell;
    uint64_t requested = event->requested, count = cell->count;
    if (ENSIO_UNLIKELY(count == 0))
        add_first(cell, event, ns);
    cell->count = ++count;
    cell->time_ns += ns;
    if (ENSIO_LIKELY(event->moved >= 0))
        cell->moved += (uint64_t)event->moved;
    else
        cell->errors++;
    if (ENSIO_UNLIKELY(event->depth | fold->nesting.depths))
        add_nesting(cell, fold, event, ns);
    double beyond = (double)(int64_t)(ns - cell->shift_ns), square = beyond * beyond;
    cell->power2 += square;
    cell->power3 += square * beyond;
    cell->power4 += square * square;
    if (ENSIO_UNLIKELY(ns < cell->min_ns))
        cell->min_ns = ns;
    if (ENSIO_UNLIKELY(ns > cell->max_ns))
        cell->max_ns = ns;
    if (ENSIO_UNLIKELY(requested < cell->min_requested))
        cell->min_requested = requested;
    if (ENSIO_UNLIKELY(requested > cell->max_requested))
        cell->max_requested = requested;
    if (ENSIO_UNLIKELY(event->start < cell->first_start))
        cell->first_start = event->start;
    uint64_t end = event->start + event->duration;
    if (end > cell->last_end)
        cell->last_end = end;
    if (ENSIO_UNLIKELY(event->duration > place->least || count <= ENSIO_LARGEST))
        keep_longest(place, event, fold->window->thread);
}

int ensio_add_event(struct ensio_fold *fold, const struct ensio_event *event, struct ensio_last *last, uint64_t rate)
{
    uint64_t ns = ensio_ns_of(event->duration, rate);
    if (ENSIO_UNLIKELY(what_of(event) != last->what || event->requested != last->requested ||
                       *last->counter + 1 >= last->until))
        find_place(event, last);
    ++*last->counter;
    struct ensio_place *place = last->place;
    if (ENSIO_UNLIKELY(!place))
        return -1;
    uint32_t bin = ensio_bin(ns);
    uint64_t *octave = place->octaves[bin / ENSIO_BLOCK_BINS];
    if (ENSIO_UNLIKELY(!octave))
        octave = ensio_cell_octave(&place, bin / ENSIO_BLOCK_BINS);
    int slow = ensio_slow(place, bin);
    add_to_cell(place, fold, event, ns);
    if (ENSIO_LIKELY(octave != NULL))
        octave[bin % ENSIO_BLOCK_BINS]++;
    else
        place->cell->without_bin++;
    return slow;
}

uint32_t ensio_add_alike(struct ensio_fold *fold, uint32_t at, uint32_t end, struct ensio_last *last, uint64_t rate)
{
    struct ensio_window *window = fold->window;
    struct ensio_event *events = ensio_window_events(window);
    struct ensio_place *place = last->place;
    struct ensio_cell *cell = place->cell;
    if (events[at].depth || fold->nesting.depths || cell->count < ENSIO_LARGEST ||
        last->requested < cell->min_requested || last->requested > cell->max_requested)
        return at;
    const int scratch = window->kind == ENSIO_WINDOW_SCRATCH;
    const uint64_t what = last->what, requested = last->requested, until = last->until, least = place->least;
    const uint64_t min_ns = cell->min_ns, max_ns = cell->max_ns, shift_ns = cell->shift_ns, first_start = cell->first_start;
    uint64_t ordinal = *last->counter, count = cell->count, time_ns = cell->time_ns, moved = cell->moved;
    double power2 = cell->power2, power3 = cell->power3, power4 = cell->power4;
    for (; at < end && ordinal + 1 < until; at++) {
        struct ensio_event *event = &events[at];
        if (ENSIO_UNLIKELY(what_of(event) != what || event->requested != requested))
            break;
        uint64_t duration = event->duration, ns = ensio_ns_of(duration, rate);
        uint32_t bin = ensio_bin(ns);
        if (ENSIO_UNLIKELY(event->moved < 0 || duration > least || ns < min_ns || ns > max_ns || event->start < first_start))
            break;
        uint64_t *octave = place->octaves[bin / ENSIO_BLOCK_BINS];
        if (ENSIO_UNLIKELY(!octave))
            break;
        double beyond = (double)(int64_t)(ns - shift_ns), square = beyond * beyond;
        *last->counter = ++ordinal;
        cell->count = ++count;
        cell->time_ns = time_ns += ns;
        cell->moved = moved += (uint64_t)event->moved;
        cell->power2 = power2 += square;
        cell->power3 = power3 += square * beyond;
        cell->power4 = power4 += square * square;
        if (event->start + duration > cell->last_end)
            cell->last_end = event->start + duration;
        octave[bin % ENSIO_BLOCK_BINS]++;
        __atomic_store_n(&window->summarised, at + 1, __ATOMIC_RELEASE);
        if (scratch)
            event->call = 0;
    }
    return at;
}
