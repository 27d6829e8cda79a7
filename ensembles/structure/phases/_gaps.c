/* Find the parts of gaps that the calls of a run overlap, the numbers of times between cuts, and the first and the last
 * start between edges. gap_occupancy.py, result.py and starts.py document the arrays. */
#include "_compiled.h"
#include "summaries/arrays.h"

#include <stdint.h>

#include <ensio/bins.h>

enum {
    START,
    DURATION,
    CALL,
    DEPTH,
    TRANSFERS,
    FROM,
    TO,
    WIDTH,
    EVEN,
    EDGE,
    WHOLE,
    PART,
    FIRST,
    LAST,
    BEGUN,
    BEFORE,
    ARRAYS
};

enum { START_KINDS = 2 };

typedef struct {
    const int64_t *start, *duration;
    const uint16_t *call;
    const uint8_t *depth, *transfers;
    const int64_t *from, *to, *width, *even, *edge;
    int32_t *whole, *begun;
    int64_t *part, *first, *last, *before;
    Py_ssize_t events, calls, gaps, cells;
} job;

/* The cell of a gap that contains a time. The first cells have equal widths; the later ones become narrower towards
 * the end of the gap. */
static inline int64_t cell_of(const job *job, Py_ssize_t gap, int64_t time)
{
    const int64_t even = job->even[gap], cell = (time - job->from[gap]) / job->width[gap];
    if (cell < even && time < job->edge[gap * (job->cells + 1) + even])
        return cell;
    const int64_t left = job->to[gap] - 1 - time, most = job->to[gap] - 1 - job->edge[gap * (job->cells + 1) + even];
    return even + (int64_t)ensio_bin((uint64_t)most) - (int64_t)ensio_bin((uint64_t)left);
}

/* Add the call from `start` to `end` to the cells of a gap that it overlaps. */
static void mark(const job *job, Py_ssize_t gap, int64_t start, int64_t end)
{
    const int64_t from = job->from[gap], to = job->to[gap];
    const int64_t low = start > from ? start : from, high = end < to ? end : to;
    const int64_t cell = cell_of(job, gap, low), last = high > low ? cell_of(job, gap, high - 1) : cell;
    const int64_t *const edge = job->edge + gap * (job->cells + 1);
    int64_t *const part = job->part + gap * job->cells, *const first = job->first + gap * job->cells;
    int64_t *const ends = job->last + gap * job->cells;
    if (cell == last) {
        part[cell] += high - low;
    } else {
        int32_t *const whole = job->whole + gap * (job->cells + 1);
        part[cell] += edge[cell + 1] - low;
        part[last] += high - edge[last];
        whole[cell + 1]++;
        whole[last]--;
    }
    if (start >= from)
        job->begun[gap * job->cells + cell]++;
    if (low < first[cell])
        first[cell] = low;
    if (high > ends[last])
        ends[last] = high;
}

static void mark_all(const job *job)
{
    Py_ssize_t gap = 0; /* the first gap that does not end before the call begins */
    for (Py_ssize_t i = 0; i < job->events; i++) {
        const int64_t start = job->start[i], end = start + job->duration[i];
        if (job->depth[i] || job->call[i] >= job->calls || !job->transfers[job->call[i]])
            continue;
        /* Most calls belong to the same gap as the previous call, or to the next gap. */
        if (gap < job->gaps && start >= job->to[gap])
            gap++;
        if ((gap < job->gaps && start >= job->to[gap]) || (gap > 0 && start < job->to[gap - 1])) {
            Py_ssize_t low = 0, high = job->gaps;
            while (low < high) {
                const Py_ssize_t middle = low + (high - low) / 2;
                if (job->to[middle] <= start)
                    low = middle + 1;
                else
                    high = middle;
            }
            gap = low;
        }
        job->before[gap] += gap == job->gaps || start < job->from[gap];
        for (Py_ssize_t at = gap; at < job->gaps && (end > job->from[at] || start >= job->from[at]); at++)
            mark(job, at, start, end);
    }
}

static PyObject *mark_gaps(PyObject *module, PyObject *args)
{
    (void)module;
    static const array_kind wanted[ARRAYS] = {
        {"start", 8, 0},       {"duration", 8, 0},   {"call", 2, 0},        {"depth", 1, 0},
        {"transfers", 1, 0},   {"gap_from", 8, 0},   {"gap_to", 8, 0},      {"width", 8, 0},
        {"even", 8, 0},        {"edge", 8, 0},       {"whole", 4, WRITTEN}, {"part", 8, WRITTEN},
        {"first", 8, WRITTEN}, {"last", 8, WRITTEN}, {"begun", 4, WRITTEN}, {"before", 8, WRITTEN}};
    Py_buffer views[ARRAYS] = {0};
    PyObject *result = NULL;
    if (get_only_arrays(views, args, wanted, ARRAYS, TRANSFERS) != 0)
        goto done;
    const Py_ssize_t events = length_of(&views[START]), gaps = length_of(&views[TO]);
    const Py_ssize_t cells = gaps ? length_of(&views[PART]) / gaps : 0;
    int fits =
        length_of(&views[FROM]) == gaps && length_of(&views[WIDTH]) == gaps && length_of(&views[PART]) == gaps * cells;
    fits &= length_of(&views[WHOLE]) == gaps * (cells + 1);
    fits &= length_of(&views[FIRST]) == gaps * cells && length_of(&views[LAST]) == gaps * cells;
    fits &= length_of(&views[BEGUN]) == gaps * cells && length_of(&views[BEFORE]) == gaps + 1;
    const job job = {.start = views[START].buf,
                     .duration = views[DURATION].buf,
                     .call = views[CALL].buf,
                     .depth = views[DEPTH].buf,
                     .transfers = views[TRANSFERS].buf,
                     .from = views[FROM].buf,
                     .to = views[TO].buf,
                     .width = views[WIDTH].buf,
                     .even = views[EVEN].buf,
                     .edge = views[EDGE].buf,
                     .whole = views[WHOLE].buf,
                     .begun = views[BEGUN].buf,
                     .part = views[PART].buf,
                     .first = views[FIRST].buf,
                     .last = views[LAST].buf,
                     .before = views[BEFORE].buf,
                     .events = events,
                     .calls = length_of(&views[TRANSFERS]),
                     .gaps = gaps,
                     .cells = cells};
    fits &= length_of(&views[EVEN]) == gaps && length_of(&views[EDGE]) == gaps * (cells + 1);
    for (Py_ssize_t i = 0; fits && i < gaps; i++) {
        fits = job.width[i] > 0 && job.to[i] > job.from[i] && job.even[i] >= 0 && job.even[i] < cells;
        const int64_t fine = fits ? job.to[i] - 1 - job.edge[i * (cells + 1) + job.even[i]] : 0;
        fits = fits && fine >= 0 && job.even[i] + (int64_t)ensio_bin((uint64_t)fine) < cells;
    }
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "the arrays of events, and those of gaps and cells, do not fit each other");
        goto done;
    }
    Py_BEGIN_ALLOW_THREADS
    mark_all(&job);
    Py_END_ALLOW_THREADS
    result = Py_NewRef(Py_None);
done:
    release_arrays(views, ARRAYS);
    return result;
}

/* The part between cuts, which rise, in which a time is; `part` is that of the time before. Times mostly follow each
 * other, so that most need no search. */
static inline Py_ssize_t part_of(const int64_t *cut, Py_ssize_t cuts, Py_ssize_t part, int64_t time)
{
    if ((part == 0 || time >= cut[part - 1]) && (part == cuts || time < cut[part]))
        return part;
    Py_ssize_t low = 0, high = cuts;
    while (low < high) {
        const Py_ssize_t middle = low + (high - low) / 2;
        if (cut[middle] <= time)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void number_times(const int64_t *time, Py_ssize_t times, const int64_t *cut, Py_ssize_t cuts,
                         const int64_t *number, int64_t *out)
{
    Py_ssize_t part = 0;
    for (Py_ssize_t i = 0; i < times; i++) {
        part = part_of(cut, cuts, part, time[i]);
        out[i] = number[part];
    }
}

static PyObject *numbers_between(PyObject *module, PyObject *args)
{
    (void)module;
    static const array_kind wanted[] = {{"time", 8, 0}, {"out", 8, WRITTEN}, {"cuts", 8, 0}, {"number", 8, 0}};
    Py_buffer views[4] = {0};
    PyObject *result = NULL;
    if (get_only_arrays(views, args, wanted, 4, 2) != 0)
        goto done;
    if (length_of(&views[3]) != length_of(&views[2]) + 1) {
        PyErr_SetString(PyExc_ValueError, "there must be a number before, between and after the cuts");
        goto done;
    }
    Py_BEGIN_ALLOW_THREADS
    number_times(views[0].buf, length_of(&views[0]), views[2].buf, length_of(&views[2]), views[3].buf, views[1].buf);
    Py_END_ALLOW_THREADS
    result = Py_NewRef(Py_None);
done:
    release_arrays(views, 4);
    return result;
}

typedef struct {
    const int64_t *start;
    const uint16_t *call;
    const uint8_t *kinds; /* of each function: bit k is set if its calls are of kind k */
    const int64_t *edge;
    int64_t *least, *most; /* by kind and cell; there is a cell before, between and after the edges */
    Py_ssize_t events, calls, edges;
} starts_job;

/* Return the first event of an unknown function or kind, or -1. */
static Py_ssize_t see_starts(const starts_job *job)
{
    Py_ssize_t cell = 0;
    for (Py_ssize_t i = 0; i < job->events; i++) {
        if (job->call[i] >= job->calls || job->kinds[job->call[i]] >> START_KINDS)
            return i;
        if (!job->kinds[job->call[i]])
            continue;
        const int64_t start = job->start[i];
        cell = part_of(job->edge, job->edges, cell, start);
        for (unsigned left = job->kinds[job->call[i]], kind = 0; left; left >>= 1, kind++) {
            if (!(left & 1))
                continue;
            int64_t *const least = job->least + (Py_ssize_t)kind * (job->edges + 1) + cell;
            int64_t *const most = job->most + (Py_ssize_t)kind * (job->edges + 1) + cell;
            *least = start < *least ? start : *least;
            *most = start > *most ? start : *most;
        }
    }
    return -1;
}

static PyObject *mark_starts(PyObject *module, PyObject *args)
{
    (void)module;
    enum { STARTS, CALLS, KINDS, EDGES, LEAST, MOST, COUNT };
    static const array_kind wanted[COUNT] = {{"start", 8, 0}, {"call", 2, 0},        {"kinds", 1, 0},
                                             {"edges", 8, 0}, {"least", 8, WRITTEN}, {"most", 8, WRITTEN}};
    Py_buffer views[COUNT] = {0};
    PyObject *result = NULL;
    if (get_only_arrays(views, args, wanted, COUNT, KINDS) != 0)
        goto done;
    const starts_job job = {.start = views[STARTS].buf,
                            .call = views[CALLS].buf,
                            .kinds = views[KINDS].buf,
                            .edge = views[EDGES].buf,
                            .least = views[LEAST].buf,
                            .most = views[MOST].buf,
                            .events = length_of(&views[STARTS]),
                            .calls = length_of(&views[KINDS]),
                            .edges = length_of(&views[EDGES])};
    const Py_ssize_t cells = START_KINDS * (job.edges + 1);
    int fits = length_of(&views[LEAST]) == cells && length_of(&views[MOST]) == cells;
    if (fits) {
        Py_BEGIN_ALLOW_THREADS
        fits = see_starts(&job) < 0;
        Py_END_ALLOW_THREADS
    }
    if (fits)
        result = Py_NewRef(Py_None);
    else
        PyErr_SetString(PyExc_ValueError, "the events, the edges and the cells between them do not fit each other");
done:
    release_arrays(views, COUNT);
    return result;
}

PyMethodDef gap_functions[] = {{"mark_gaps", mark_gaps, METH_VARARGS, NULL},
                               {"mark_starts", mark_starts, METH_VARARGS, NULL},
                               {"numbers_between", numbers_between, METH_VARARGS, NULL},
                               {NULL, NULL, 0, NULL}};
