/* Which parts of gaps the calls of a run reach into, for gaps_of_all.py, which says what the arrays mean and has the same in
 * NumPy; results are equal. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
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

static const char *const names[ARRAYS] = {"start", "duration", "call",  "depth", "transfers", "gap_from", "gap_to", "width",
                                          "even",  "edge",     "whole", "part",  "first",     "last",     "begun",  "before"};
static const Py_ssize_t itemsizes[ARRAYS] = {8, 8, 2, 1, 1, 8, 8, 8, 8, 8, 4, 8, 8, 8, 4, 8};

typedef struct {
    const int64_t *start, *duration;
    const uint16_t *call;
    const uint8_t *depth, *transfers;
    const int64_t *from, *to, *width, *even, *edge;
    int32_t *whole, *begun;
    int64_t *part, *first, *last, *before;
    Py_ssize_t events, calls, gaps, cells;
} job;

/* The cell of a gap in which a moment lies: one of equal cells, or behind them, of those that become the finer the nearer the
 * end of the gap is. */
static inline int64_t cell_of(const job *job, Py_ssize_t gap, int64_t time)
{
    const int64_t even = job->even[gap], cell = (time - job->from[gap]) / job->width[gap];
    if (cell < even && time < job->edge[gap * (job->cells + 1) + even])
        return cell;
    const int64_t left = job->to[gap] - 1 - time, most = job->to[gap] - 1 - job->edge[gap * (job->cells + 1) + even];
    return even + (int64_t)ensio_bin((uint64_t)most) - (int64_t)ensio_bin((uint64_t)left);
}

/* What the call from `start` to `end` leaves in the cells of a gap into which it reaches. */
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
    Py_ssize_t gap = 0; /* the first one that does not end before the call begins */
    for (Py_ssize_t i = 0; i < job->events; i++) {
        const int64_t start = job->start[i], end = start + job->duration[i];
        if (job->depth[i] || job->call[i] >= job->calls || !job->transfers[job->call[i]])
            continue;
        /* Most calls lie by the same gap as the one before, or by the next. */
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
        for (Py_ssize_t at = gap; at < job->gaps && (end > job->from[at] || start >= job->from[at]);
             at++)
            mark(job, at, start, end);
    }
}

static PyObject *mark_gaps(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *objects[ARRAYS], *result = NULL;
    Py_buffer views[ARRAYS];
    int held[ARRAYS] = {0};
    if (PyTuple_Size(args) != ARRAYS) {
        PyErr_Format(PyExc_TypeError, "%d arrays are needed", ARRAYS);
        return NULL;
    }
    for (int i = 0; i < ARRAYS; i++)
        objects[i] = PyTuple_GetItem(args, i);
    for (int i = 0; i < ARRAYS; i++) {
        if (PyObject_GetBuffer(objects[i], &views[i], PyBUF_C_CONTIGUOUS | (i >= WHOLE ? PyBUF_WRITABLE : 0)) != 0)
            goto done;
        held[i] = 1;
        if (views[i].itemsize != itemsizes[i]) {
            PyErr_Format(PyExc_TypeError, "%s must have items of %zd bytes", names[i], itemsizes[i]);
            goto done;
        }
    }
    const Py_ssize_t events = views[START].len / 8, gaps = views[TO].len / 8;
    const Py_ssize_t cells = gaps ? views[PART].len / 8 / gaps : 0;
    int fits = views[DURATION].len / 8 == events && views[CALL].len / 2 == events && views[DEPTH].len == events;
    fits &= views[FROM].len / 8 == gaps && views[WIDTH].len / 8 == gaps && views[PART].len / 8 == gaps * cells;
    fits &= views[WHOLE].len / 4 == gaps * (cells + 1);
    fits &= views[FIRST].len == views[PART].len && views[LAST].len == views[PART].len;
    fits &= views[BEGUN].len / 4 == gaps * cells && views[BEFORE].len / 8 == gaps + 1;
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
                     .calls = views[TRANSFERS].len,
                     .gaps = gaps,
                     .cells = cells};
    fits &= views[EVEN].len / 8 == gaps && views[EDGE].len / 8 == gaps * (cells + 1);
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
    for (int i = 0; i < ARRAYS; i++)
        if (held[i])
            PyBuffer_Release(&views[i]);
    return result;
}

static PyMethodDef methods[] = {{"mark", mark_gaps, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT, .m_name = "_gaps", .m_size = 0, .m_methods = methods};

PyMODINIT_FUNC PyInit__gaps(void)
{
    return PyModule_Create(&definition);
}
