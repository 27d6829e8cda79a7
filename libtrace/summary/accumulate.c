#include "accumulate.h"

#include "keep_slowest.h"
#include "ordinals.h"

#include <calls/calls.h>
#include <core/recorder.h>
#include <time/tick_rate.h>

#include <ensio/bins.h>

/* The number of significant bits: 0, 1 for 1, 2 for 2 and 3, 3 for 4 to 7 ... */
static inline uint32_t bits_of(uint64_t value)
{
    return value ? 64U - (uint32_t)__builtin_clzll(value) : 0;
}

/* The last eight bytes of an event without its site, which the cells do not distinguish. */
static inline uint64_t what_of(const struct ensio_event *event)
{
    const union {
        struct {
            uint16_t file, site, call;
            uint8_t depth, flags;
        } part;
        uint64_t whole;
    } kept = {.part = {UINT16_MAX, 0, UINT16_MAX, UINT8_MAX, UINT8_MAX}};
    return __atomic_load_n((const uint64_t *)(const void *)&event->file, __ATOMIC_ACQUIRE) & kept.whole;
}

/* The class of an ordinal, and the first ordinal after the class. */
static uint32_t ordinal_class(uint64_t ordinal, uint64_t *until)
{
    if (ordinal <= ENSIO_ORDINALS_APART) {
        *until = ordinal + 1;
        return (uint32_t)ordinal;
    }
    *until = 1ULL << bits_of(ordinal);
    return ENSIO_ORDINALS_APART + bits_of(ordinal) - bits_of(ENSIO_ORDINALS_APART) + 1;
}

static uint64_t not_counted; /* calls on files beyond the limit */

struct ensio_run_cache ensio_empty_run_cache(void)
{
    return (struct ensio_run_cache){.counter = &not_counted};
}

static void find_place(const struct ensio_event *event, struct ensio_run_cache *cache)
{
    uint32_t ordinal = ENSIO_ORDINAL_UNKNOWN;
    cache->what = what_of(event);
    cache->requested = event->requested;
    cache->counter = ensio_ordinal_counter(event->file, ensio_call_ops[event->call & (ENSIO_CALLS - 1)]);
    if (cache->counter) {
        ordinal = ordinal_class(*cache->counter + 1, &cache->until);
    } else {
        cache->counter = &not_counted;
        cache->until = UINT64_MAX;
    }
    cache->place = ensio_cell_find(event->call, (uint8_t)bits_of(event->requested), (uint8_t)ordinal);
}

/* Among equal durations, earlier calls are kept. */
static void keep_longest(struct ensio_place *place, const struct ensio_event *event, uint16_t thread)
{
    struct ensio_cell *cell = place->cell;
    uint32_t at = 0;
    if (cell->count <= ENSIO_LARGEST) {
        at = (uint32_t)cell->count - 1;
    } else {
        for (uint32_t i = 1; i < ENSIO_LARGEST; i++)
            if (cell->largest[i].duration < cell->largest[at].duration ||
                (cell->largest[i].duration == cell->largest[at].duration &&
                 cell->largest[i].start > cell->largest[at].start))
                at = i;
    }
    cell->largest[at] = *event;
    cell->largest[at].flags &= (uint8_t)~ENSIO_SUMMED_ONLY;
    cell->threads[at] = thread;
    place->usual_rate = 0;
    if (cell->count >= ENSIO_LARGEST) {
        place->least = cell->largest[0].duration;
        for (uint32_t i = 1; i < ENSIO_LARGEST; i++)
            if (cell->largest[i].duration < place->least)
                place->least = cell->largest[i].duration;
    }
}

static void add_first(struct ensio_place *place, const struct ensio_event *event, uint64_t ns)
{
    struct ensio_cell *cell = place->cell;
    ensio_cell_changes(place);
    cell->shift_ns = cell->min_ns = cell->max_ns = ns;
    cell->min_requested = cell->max_requested = event->requested;
    cell->first_start = event->start;
}

/* The flag of an enclosing call that counts the bytes of this kind. */
static uint8_t carried_flag(uint16_t call)
{
    const uint8_t op = ensio_call_ops[call & (ENSIO_CALLS - 1)];
    return op == ENSIO_OP_READ ? ENSIO_CARRIED_READ : op == ENSIO_OP_WRITE ? ENSIO_CARRIED_WRITE : 0;
}

/* Most calls are not nested, so this is a separate function. */
static void add_nested_time(struct ensio_cell *cell, struct ensio_cursor *cursor, const struct ensio_event *event,
                            uint64_t ns)
{
    struct ensio_window *window = cursor->window;
    if (cursor->nested_time.depths)
        cell->inner_ns +=
            ensio_nested_time_take(&cursor->nested_time, event, ensio_window_events(window), window->rate);
    if (!event->depth)
        return;
    ensio_nested_time_add(&cursor->nested_time, event, ns);
    const uint64_t is_nested = event->depth > !!(event->flags & ENSIO_SAME_CALL);
    cell->nested_count += is_nested, cell->nested_ns += is_nested * ns;
    if (event->moved > 0 && event->flags & carried_flag(event->call))
        cell->carried_moved += (uint64_t)event->moved;
}

static inline void add_to_cell(struct ensio_place *place, struct ensio_cursor *cursor, const struct ensio_event *event,
                               uint64_t ns)
{
    struct ensio_cell *cell = place->cell;
    uint64_t requested = event->requested, count = cell->count;
    if (ENSIO_UNLIKELY(count == 0))
        add_first(place, event, ns);
    else if (ENSIO_UNLIKELY(cell->sum))
        ensio_cell_changes(place);
    cell->count = ++count;
    cell->time_ns += ns;
    if (ENSIO_LIKELY(event->moved >= 0))
        cell->moved += (uint64_t)event->moved;
    else
        cell->errors++;
    if (ENSIO_UNLIKELY(event->depth | cursor->nested_time.depths))
        add_nested_time(cell, cursor, event, ns);
    double beyond = (double)(int64_t)(ns - cell->shift_ns), square = beyond * beyond;
    cell->power2 += square;
    cell->power3 += square * beyond;
    cell->power4 += square * square;
    if (ENSIO_UNLIKELY(ns < cell->min_ns)) {
        cell->min_ns = ns;
        place->usual_rate = 0;
    }
    if (ENSIO_UNLIKELY(ns > cell->max_ns)) {
        cell->max_ns = ns;
        place->usual_rate = 0;
    }
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
        keep_longest(place, event, cursor->window->thread);
}

int ensio_add_event(struct ensio_cursor *cursor, const struct ensio_event *event, struct ensio_run_cache *cache,
                    uint64_t rate)
{
    uint64_t ns = ensio_ticks_to_ns(event->duration, rate);
    if (ENSIO_UNLIKELY(what_of(event) != cache->what || event->requested != cache->requested ||
                       *cache->counter + 1 >= cache->until))
        find_place(event, cache);
    ++*cache->counter;
    struct ensio_place *place = cache->place;
    if (ENSIO_UNLIKELY(!place))
        return -1;
    uint32_t bin = ensio_bin(ns);
    uint64_t *octave = place->octaves[bin / ENSIO_BLOCK_BINS];
    if (ENSIO_UNLIKELY(!octave))
        octave = ensio_cell_octave(&place, bin / ENSIO_BLOCK_BINS);
    int slow = ensio_is_slow(place, bin);
    add_to_cell(place, cursor, event, ns);
    if (ENSIO_LIKELY(octave != NULL))
        octave[bin % ENSIO_BLOCK_BINS]++;
    else
        place->cell->without_bin++;
    return slow;
}

/* Finds the range of durations, in ticks, that change no extreme of a cell: between its minimum and maximum (by
 * inverting ensio_ticks_to_ns), and shorter than the longest calls that are kept. Durations over 2 s take the slow
 * path, so that products with the rate fit 64 bits. Returns whether the range is not empty. */
static int find_usual(struct ensio_place *place, uint64_t rate)
{
    const uint64_t half = 1ULL << (ENSIO_RATE_BITS - 1), most_ns = (1ULL << 31) - 2;
    const uint64_t min_ns = place->cell->min_ns, max_ns = place->cell->max_ns < most_ns ? place->cell->max_ns : most_ns;
    if (min_ns > max_ns)
        return 0;
    const uint64_t low = min_ns ? ((min_ns << ENSIO_RATE_BITS) - half + rate - 1) / rate : 0;
    uint64_t high = (((max_ns + 1) << ENSIO_RATE_BITS) - half - 1) / rate;
    high = high < place->least ? high : place->least;
    if (low > high)
        return 0;
    place->usual_low_ticks = low;
    place->usual_span_ticks = high - low;
    place->usual_rate = rate;
    return 1;
}

/* The path of most events. Sums are updated in memory, because there are more of them than registers. */
static inline __attribute__((always_inline)) uint32_t add_usual(struct ensio_window *window, uint32_t at, uint32_t end,
                                                                const struct ensio_run_cache *cache, uint64_t rate,
                                                                int emptied)
{
    struct ensio_event *event = ensio_window_events(window) + at;
    struct ensio_place *const place = cache->place;
    struct ensio_cell *const cell = place->cell;
    const uint32_t first = at;
    const uint64_t what = cache->what, requested = cache->requested, shift_ns = cell->shift_ns,
                   first_start = cell->first_start;
    const uint64_t low = place->usual_low_ticks, span = place->usual_span_ticks;
    for (; at < end; at++, event++) {
        const uint64_t duration = event->duration, start = event->start;
        const int64_t moved = event->moved;
        if (ENSIO_UNLIKELY(what_of(event) != what || event->requested != requested || duration - low > span ||
                           moved < 0 || start < first_start))
            break;
        const uint64_t ns = (duration * rate + (1ULL << (ENSIO_RATE_BITS - 1))) >> ENSIO_RATE_BITS;
        const uint32_t bin = ensio_bin(ns);
        uint64_t *const octave = place->octaves[bin / ENSIO_BLOCK_BINS];
        if (ENSIO_UNLIKELY(!octave))
            break;
        const double beyond = (double)(int64_t)(ns - shift_ns), square = beyond * beyond;
        cell->count++;
        cell->time_ns += ns;
        cell->moved += (uint64_t)moved;
        cell->power2 += square;
        cell->power3 += square * beyond;
        cell->power4 += square * square;
        if (ENSIO_LIKELY(start + duration > cell->last_end))
            cell->last_end = start + duration;
        octave[bin % ENSIO_BLOCK_BINS]++;
        __atomic_store_n(&window->summarised, at + 1, __ATOMIC_RELEASE);
        if (emptied)
            event->call = 0;
    }
    *cache->counter += at - first;
    return at;
}

uint32_t ensio_add_run(struct ensio_cursor *cursor, uint32_t at, uint32_t end, struct ensio_run_cache *cache,
                       uint64_t rate)
{
    struct ensio_window *window = cursor->window;
    const struct ensio_event *event = ensio_window_events(window) + at;
    struct ensio_place *place = cache->place;
    const struct ensio_cell *cell = place->cell;
    if (what_of(event) != cache->what || event->depth || cursor->nested_time.depths || cell->count < ENSIO_LARGEST ||
        cache->requested < cell->min_requested || cache->requested > cell->max_requested)
        return at;
    if (place->usual_rate != rate && !find_usual(place, rate))
        return at;
    const uint64_t until = cache->until - *cache->counter - 1; /* events until the class of the ordinal ends */
    if (until < end - at)
        end = at + (uint32_t)until;
    return window->kind == ENSIO_WINDOW_SCRATCH || event->flags & ENSIO_SUMMED_ONLY
               ? add_usual(window, at, end, cache, rate, 1)
               : add_usual(window, at, end, cache, rate, 0);
}
