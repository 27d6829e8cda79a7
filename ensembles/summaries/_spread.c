/* Spread time or bytes of events over the cells of time that they overlap. kernels.py and spreading.py document the
 * functions. */
#include "_compiled.h"
#include "summaries/arrays.h"
#include "summaries/processors.h"

#include <stdint.h>

/* The part of `amount` in the first `elapsed` ns of an event; all of it at the end. The result depends only on the
 * event and the elapsed time. Therefore the parts in the cells sum to the amount exactly, whatever the rounding. */
static inline int64_t used(int64_t amount, int64_t elapsed, int64_t duration)
{
    if (elapsed >= duration)
        return amount;
    return (int64_t)((double)amount * ((double)elapsed / (double)duration));
}

typedef struct {
    const int64_t *start, *duration, *amount; /* amount: NULL: time is spread */
    const int64_t *flight; /* NULL, or how long a request was under way, in which it moved its bytes */
    const int32_t *row;
    Py_ssize_t events;
    int level;
    int64_t first;
    int64_t *out, *begun; /* begun: NULL, or counts of the events that begin in a cell, of the same shape */
    int64_t rows, cells;
} spread_job;

/* Wraps beyond 64 bits as NumPy does (8 PiB in one cell, which only forged events move). */
static inline int64_t wrapped(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

/* How long an event lasts, or moves its bytes. */
static inline int64_t lasting(const spread_job *job, Py_ssize_t i)
{
    const int64_t duration = job->duration[i];
    return job->flight && job->flight[i] > duration ? job->flight[i] : duration;
}

/* Spread an event, and return whether it fits into `out`. Time is spread exactly, ns by ns. */
static inline int spread_event(const spread_job *job, int64_t start, int64_t duration, int64_t row, int64_t amount,
                               int is_time)
{
    const int level = job->level;
    int64_t cell = (start >> level) - job->first, final;
    if (row >= job->rows || duration < 0 || cell < 0 ||
        __builtin_add_overflow(start, duration > 0 ? duration - 1 : 0, &final))
        return 0;
    const int64_t last = (final >> level) - job->first;
    if (last >= job->cells)
        return 0;
    int64_t *const out = job->out + row * job->cells;
    int64_t before = 0;
    if (job->begun)
        job->begun[row * job->cells + cell]++;
    for (; cell < last; cell++) {
        const int64_t elapsed = ((job->first + cell + 1) * ((int64_t)1 << level)) - start;
        const int64_t now = is_time ? elapsed : used(amount, elapsed, duration);
        out[cell] = wrapped(out[cell], now - before);
        before = now;
    }
    out[last] = wrapped(out[last], amount - before);
    return 1;
}

/* Return the first event that does not fit into `out`, or -1. */
static Py_ssize_t spread_events(const spread_job *job)
{
    for (Py_ssize_t i = 0; i < job->events; i++) {
        const int64_t duration = job->duration[i];
        if (job->row[i] >= 0 && !spread_event(job, job->start[i], duration, job->row[i],
                                              job->amount ? job->amount[i] : duration, !job->amount))
            return i;
    }
    return -1;
}

static PyObject *spread(PyObject *module, PyObject *args)
{
    (void)module;
    enum { START, DURATION, ROW, AMOUNT, COLUMNS, OUT = COLUMNS, ARRAYS };
    static const array_kind wanted[ARRAYS] = {
        {"start", 8, 0}, {"duration", 8, 0}, {"row", 4, 0}, {"amount", 8, OR_NONE}, {"out", 8, WRITTEN}};
    int level;
    long long first, cells;
    PyObject *objects[ARRAYS], *result = NULL;
    Py_buffer views[ARRAYS] = {0};
    if (!PyArg_ParseTuple(args, "OOOOiLOL", &objects[START], &objects[DURATION], &objects[ROW], &objects[AMOUNT],
                          &level, &first, &objects[OUT], &cells))
        return NULL;
    if (get_arrays(views, objects, wanted, ARRAYS, COLUMNS) != 0)
        goto done;
    const Py_ssize_t out_items = length_of(&views[OUT]);
    if (level < 0 || level > 62 || cells <= 0 || out_items % cells != 0) {
        PyErr_SetString(PyExc_ValueError, "level must be 0 to 62, and out whole rows of cells");
        goto done;
    }
    const spread_job job = {.start = views[START].buf,
                            .duration = views[DURATION].buf,
                            .row = views[ROW].buf,
                            .amount = views[AMOUNT].buf,
                            .events = length_of(&views[START]),
                            .level = level,
                            .first = first,
                            .out = views[OUT].buf,
                            .rows = out_items / cells,
                            .cells = cells};
    Py_ssize_t misfit;
    Py_BEGIN_ALLOW_THREADS
    misfit = spread_events(&job);
    Py_END_ALLOW_THREADS
    if (misfit >= 0)
        PyErr_Format(PyExc_IndexError, "event %zd lies outside of the rows or cells", misfit);
    else
        result = Py_NewRef(Py_None);
done:
    release_arrays(views, ARRAYS);
    return result;
}

/* The events to spread, their rows, and the quantity. */
typedef struct {
    const uint16_t *call;
    const int32_t *row_of; /* by call; negative: events of the call are left out */
    Py_ssize_t calls;
    const uint32_t *rank; /* NULL: all ranks share a row; else `in_row` ranks do, and row_of is the first row */
    int64_t in_row;
    const uint8_t *depth; /* if given, events deeper than 0 are left out */
    const int64_t *moved; /* if given, events that moved nothing are left out */
    int by_bytes;         /* whether bytes are spread, in units of 2**-shift; else time */
    const uint8_t *carried,
        *bits; /* with `moved`: events whose carried bits include those of their call are left out */
    int shift;
} choice;

/* The row of an event; -1: it is left out; -2: its call is unknown. */
static inline int64_t row_of_event(const choice *choice, Py_ssize_t i)
{
    const uint16_t call = choice->call[i];
    if (call >= choice->calls)
        return -2;
    const int64_t row = choice->row_of[call];
    if (row < 0 || (choice->depth && choice->depth[i]))
        return -1;
    if (choice->moved && (choice->moved[i] <= 0 || (choice->carried[i] & choice->bits[call])))
        return -1;
    return row;
}

static Py_ssize_t spread_chosen(const spread_job *job, const choice *choice)
{
    uint32_t last_rank = 0; /* the division is the slowest operation of the loop */
    int64_t add = 0;
    for (Py_ssize_t i = 0; i < job->events; i++) {
        const int64_t row = row_of_event(choice, i), duration = lasting(job, i);
        if (row == -2)
            return i;
        if (row < 0)
            continue;
        if (choice->rank && choice->rank[i] != last_rank) {
            last_rank = choice->rank[i];
            add = last_rank / choice->in_row;
        }
        const int64_t amount = choice->by_bytes ? (int64_t)((uint64_t)choice->moved[i] << choice->shift) : duration;
        if (!spread_event(job, job->start[i], duration, row + add, amount, !choice->by_bytes))
            return i;
    }
    return -1;
}

/* Compute the time span of the chosen events; an event without a duration counts as 1 ns long. Return whether there are
 * any; -2: an event ends before it starts; -3: the call of an event is unknown. */
static int extent_of_chosen(const spread_job *job, const choice *choice, int64_t *low, int64_t *high)
{
    int any = 0;
    for (Py_ssize_t i = 0; i < job->events; i++) {
        const int64_t row = row_of_event(choice, i), start = job->start[i], duration = lasting(job, i);
        if (row == -2)
            return -3;
        if (row < 0)
            continue;
        const int64_t end = (int64_t)((uint64_t)start + (uint64_t)(duration > 1 ? duration : 1));
        if (duration < 0 || end <= start)
            return -2;
        *low = !any || start < *low ? start : *low;
        *high = !any || end > *high ? end : *high;
        any = 1;
    }
    return any;
}

/* Arguments: columns, choice and output. A shift below 0: time is spread. If `out` is None, return the time span of the
 * chosen events. */
static PyObject *spread_calls(PyObject *module, PyObject *args)
{
    (void)module;
    enum {
        START,
        DURATION,
        FLIGHT,
        CALL,
        RANK,
        DEPTH,
        MOVED,
        CARRIED,
        COLUMNS,
        ROW_OF = COLUMNS,
        BITS,
        OUT,
        BEGUN,
        ARRAYS
    };
    static const array_kind wanted[ARRAYS] = {
        {"start", 8, 0},      {"duration", 8, 0},    {"flight", 8, OR_NONE},        {"call", 2, 0},
        {"rank", 4, OR_NONE}, {"depth", 1, OR_NONE}, {"moved", 8, OR_NONE},         {"carried", 1, OR_NONE},
        {"row_of", 4, 0},     {"bits", 1, OR_NONE},  {"out", 8, OR_NONE | WRITTEN}, {"begun", 8, OR_NONE | WRITTEN}};
    PyObject *objects[ARRAYS], *result = NULL;
    Py_buffer views[ARRAYS] = {0};
    int level;
    long long in_row, first, cells;
    choice chosen = {0};
    if (!PyArg_ParseTuple(args, "OOOOOOLOOOOiiLOLO", &objects[START], &objects[DURATION], &objects[FLIGHT],
                          &objects[CALL], &objects[ROW_OF], &objects[RANK], &in_row, &objects[DEPTH], &objects[MOVED],
                          &objects[CARRIED], &objects[BITS], &chosen.shift, &level, &first, &objects[OUT], &cells,
                          &objects[BEGUN]))
        return NULL;
    if (get_arrays(views, objects, wanted, ARRAYS, COLUMNS) != 0)
        goto done;
    const int by_bytes = is_given(&views[MOVED]), is_filled = is_given(&views[OUT]);
    int fits =
        by_bytes == is_given(&views[CARRIED]) && by_bytes == is_given(&views[BITS]) && in_row > 0 && chosen.shift < 63;
    fits &= !by_bytes || length_of(&views[BITS]) == length_of(&views[ROW_OF]);
    fits &= !is_given(&views[BEGUN]) || (is_filled && length_of(&views[BEGUN]) == length_of(&views[OUT]));
    fits &= !is_filled || (level >= 0 && level <= 62 && cells > 0 && length_of(&views[OUT]) % cells == 0);
    if (!fits) {
        PyErr_SetString(PyExc_ValueError,
                        "in_row must be above 0, shift below 63, bits as many as row_of, out whole rows of cells, and "
                        "begun as long");
        goto done;
    }
    chosen.call = views[CALL].buf, chosen.row_of = views[ROW_OF].buf, chosen.calls = length_of(&views[ROW_OF]);
    chosen.rank = views[RANK].buf, chosen.in_row = in_row, chosen.depth = views[DEPTH].buf;
    chosen.by_bytes = by_bytes && chosen.shift >= 0;
    if (by_bytes)
        chosen.moved = views[MOVED].buf, chosen.carried = views[CARRIED].buf, chosen.bits = views[BITS].buf;
    spread_job job = {.start = views[START].buf,
                      .duration = views[DURATION].buf,
                      .flight = views[FLIGHT].buf,
                      .events = length_of(&views[START])};
    int64_t low = 0, high = 0;
    Py_ssize_t misfit = -1;
    int found = 0;
    if (is_filled) {
        job.level = level, job.first = first, job.cells = cells;
        job.out = views[OUT].buf, job.rows = length_of(&views[OUT]) / cells;
        job.begun = views[BEGUN].buf;
    }
    Py_BEGIN_ALLOW_THREADS
    if (is_filled)
        misfit = spread_chosen(&job, &chosen);
    else
        found = extent_of_chosen(&job, &chosen, &low, &high);
    Py_END_ALLOW_THREADS
    if (misfit >= 0 || found == -3)
        PyErr_Format(PyExc_IndexError, "event %zd lies outside of the rows or cells", misfit);
    else if (found == -2)
        PyErr_SetString(PyExc_OverflowError, "an event ends before it starts");
    else
        result = found ? Py_BuildValue("LL", (long long)low, (long long)high) : Py_NewRef(Py_None);
done:
    release_arrays(views, ARRAYS);
    return result;
}

/* Bounds of the times of events: first and last start, shortest duration, longest time, and last end. */
FOR_EACH_PROCESSOR
static void find_bounds(const spread_job *job, int64_t *found)
{
    int64_t first = INT64_MAX, last = INT64_MIN, shortest = INT64_MAX, longest = INT64_MIN, final = INT64_MIN;
    for (Py_ssize_t i = 0; i < job->events; i++) {
        const int64_t start = job->start[i], time = lasting(job, i), end = wrapped(start, time);
        first = start < first ? start : first;
        last = start > last ? start : last;
        shortest = job->duration[i] < shortest ? job->duration[i] : shortest;
        longest = time > longest ? time : longest;
        final = end > final ? end : final;
    }
    found[0] = first, found[1] = last, found[2] = shortest, found[3] = longest, found[4] = final;
}

static PyObject *time_bounds(PyObject *module, PyObject *args)
{
    (void)module;
    enum { START, DURATION, FLIGHT, ARRAYS };
    static const array_kind wanted[ARRAYS] = {{"start", 8, 0}, {"duration", 8, 0}, {"flight", 8, OR_NONE}};
    Py_buffer views[ARRAYS] = {0};
    PyObject *result = NULL;
    if (get_only_arrays(views, args, wanted, ARRAYS, ARRAYS) == 0) {
        const spread_job job = {.start = views[START].buf,
                                .duration = views[DURATION].buf,
                                .flight = views[FLIGHT].buf,
                                .events = length_of(&views[START])};
        int64_t found[5];
        Py_BEGIN_ALLOW_THREADS
        find_bounds(&job, found);
        Py_END_ALLOW_THREADS
        result = Py_BuildValue("LLLLL", (long long)found[0], (long long)found[1], (long long)found[2],
                               (long long)found[3], (long long)found[4]);
    }
    release_arrays(views, ARRAYS);
    return result;
}

PyMethodDef spread_functions[] = {{"spread", spread, METH_VARARGS, NULL},
                                  {"spread_calls", spread_calls, METH_VARARGS, NULL},
                                  {"time_bounds", time_bounds, METH_VARARGS, NULL},
                                  {NULL, NULL, 0, NULL}};
