/* The loops over events under the summaries. kernels.py converts the arguments, documents the functions, and has
 * the same loops in NumPy; results are equal to the last bit. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdint.h>

#include <ensio/bins.h>

/* One array argument: a contiguous buffer of `itemsize`-byte items. */
static int get_array(PyObject *object, Py_buffer *view, Py_ssize_t itemsize, int flags, const char *name)
{
    if (PyObject_GetBuffer(object, view, PyBUF_C_CONTIGUOUS | flags) != 0)
        return -1;
    if (view->itemsize != itemsize) {
        PyErr_Format(PyExc_TypeError, "%s must have items of %zd bytes", name, itemsize);
        PyBuffer_Release(view);
        return -1;
    }
    return 0;
}

/* How much of `amount` has been used `elapsed` ns into an event: all of it at the end, whatever the rounding
 * before. As the result depends only on the event and on the elapsed time, the parts that an event leaves in cells
 * add up to its amount. */
static inline int64_t used(int64_t amount, int64_t elapsed, int64_t duration)
{
    if (elapsed >= duration)
        return amount;
    return (int64_t)((double)amount * ((double)elapsed / (double)duration));
}

typedef struct {
    const int64_t *start, *duration, *amount; /* amount: NULL for the time itself */
    const int32_t *row;
    Py_ssize_t events;
    int level;
    int64_t first;
    int64_t *out;
    int64_t rows, cells;
} spread_job;

/* Beyond 64 bits (8 PiB in one cell, which only forged events move) it is NumPy's sum. */
static inline int64_t wrapped(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

/* Whether an event fits into `out`. Of time itself, each ns is where it was. */
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
    for (; cell < last; cell++) {
        const int64_t elapsed = ((job->first + cell + 1) * ((int64_t)1 << level)) - start;
        const int64_t now = is_time ? elapsed : used(amount, elapsed, duration);
        out[cell] = wrapped(out[cell], now - before);
        before = now;
    }
    out[last] = wrapped(out[last], amount - before);
    return 1;
}

/* The index of the first event that does not fit into `out`, or -1. */
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
    PyObject *objects[5];
    int level;
    long long first, cells;
    if (!PyArg_ParseTuple(args, "OOOOiLOL", &objects[0], &objects[1], &objects[2], &objects[3], &level, &first,
                          &objects[4], &cells))
        return NULL;
    static const char *const names[5] = {"start", "duration", "row", "amount", "out"};
    static const Py_ssize_t itemsizes[5] = {8, 8, 4, 8, 8};
    Py_buffer views[5];
    int held[5] = {0};
    PyObject *result = NULL;
    for (int i = 0; i < 5; i++) {
        if (i == 3 && objects[i] == Py_None)
            continue;
        if (get_array(objects[i], &views[i], itemsizes[i], i == 4 ? PyBUF_WRITABLE : 0, names[i]) != 0)
            goto done;
        held[i] = 1;
    }
    const Py_ssize_t events = views[0].len / 8;
    const Py_ssize_t out_items = views[4].len / 8;
    if (views[1].len / 8 != events || views[2].len / 4 != events || (held[3] && views[3].len / 8 != events)) {
        PyErr_SetString(PyExc_ValueError, "start, duration, row and amount must be of the same length");
        goto done;
    }
    if (level < 0 || level > 62 || cells <= 0 || out_items % cells != 0) {
        PyErr_SetString(PyExc_ValueError, "level must be 0 to 62, and out whole rows of cells");
        goto done;
    }
    const spread_job job = {.start = views[0].buf,
                            .duration = views[1].buf,
                            .row = views[2].buf,
                            .amount = held[3] ? views[3].buf : NULL,
                            .events = events,
                            .level = level,
                            .first = first,
                            .out = views[4].buf,
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
    for (int i = 0; i < 5; i++)
        if (held[i])
            PyBuffer_Release(&views[i]);
    return result;
}

/* Which events are spread, into which row, and what of each. */
typedef struct {
    const uint16_t *call;
    const int32_t *row_of; /* by call; negative: its events are left out */
    Py_ssize_t calls;
    const uint32_t *rank; /* NULL: all ranks share a row; else of `in_row` each, row_of is the row of the first */
    int64_t in_row;
    const uint8_t *depth;               /* NULL, or those deeper than 0 are left out */
    const int64_t *moved;               /* NULL: the time is spread; else bytes, as 2**shift parts each */
    const uint8_t *carried, *bits;      /* with `moved`: left out are those with a bit of their call */
    int shift;
} choice;

/* The row of an event; -1: it is left out; -2: its call has no number. */
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
    uint32_t last_rank = 0; /* a division takes longer than all the rest */
    int64_t add = 0;
    for (Py_ssize_t i = 0; i < job->events; i++) {
        const int64_t row = row_of_event(choice, i), duration = job->duration[i];
        if (row == -2)
            return i;
        if (row < 0)
            continue;
        if (choice->rank && choice->rank[i] != last_rank) {
            last_rank = choice->rank[i];
            add = last_rank / choice->in_row;
        }
        const int64_t amount = choice->moved ? (int64_t)((uint64_t)choice->moved[i] << choice->shift) : duration;
        if (!spread_event(job, job->start[i], duration, row + add, amount, !choice->moved))
            return i;
    }
    return -1;
}

/* From when to when the chosen events are, an event of no duration for one ns: whether there are any. -2: one ends before it
 * starts; -3: one is of a call without a number. */
static int extent_of_chosen(const spread_job *job, const choice *choice, int64_t *low, int64_t *high)
{
    int any = 0;
    for (Py_ssize_t i = 0; i < job->events; i++) {
        const int64_t row = row_of_event(choice, i), start = job->start[i], duration = job->duration[i];
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

/* Columns, who is chosen, and where it goes; `out` None: tells the extent of the chosen events. */
static PyObject *spread_calls(PyObject *module, PyObject *args)
{
    (void)module;
    enum { START, DURATION, CALL, RANK, DEPTH, MOVED, CARRIED, COLUMNS, ROW_OF = COLUMNS, BITS, OUT, ARRAYS };
    static const char *const names[ARRAYS] = {"start", "duration", "call",   "rank", "depth",
                                              "moved", "carried",  "row_of", "bits", "out"};
    static const Py_ssize_t itemsizes[ARRAYS] = {8, 8, 2, 4, 1, 8, 1, 4, 1, 8};
    PyObject *objects[ARRAYS], *result = NULL;
    Py_buffer views[ARRAYS];
    int held[ARRAYS] = {0}, level;
    long long in_row, first, cells;
    choice chosen = {0};
    if (!PyArg_ParseTuple(args, "OOOOOLOOOOiiLOL", &objects[START], &objects[DURATION], &objects[CALL],
                          &objects[ROW_OF], &objects[RANK], &in_row, &objects[DEPTH], &objects[MOVED],
                          &objects[CARRIED], &objects[BITS], &chosen.shift, &level, &first, &objects[OUT], &cells))
        return NULL;
    for (int i = 0; i < ARRAYS; i++) {
        if (objects[i] == Py_None)
            continue;
        if (get_array(objects[i], &views[i], itemsizes[i], i == OUT ? PyBUF_WRITABLE : 0, names[i]) != 0)
            goto done;
        held[i] = 1;
    }
    int fits = held[START] && held[DURATION] && held[CALL] && held[ROW_OF] && held[MOVED] == held[CARRIED] &&
               held[MOVED] == held[BITS] && in_row > 0 && chosen.shift >= 0 && chosen.shift < 63;
    for (int i = 0; i < COLUMNS; i++)
        fits &= !held[i] || !held[START] || views[i].len / itemsizes[i] == views[START].len / 8;
    fits &= !held[BITS] || (held[ROW_OF] && views[BITS].len == views[ROW_OF].len / 4);
    fits &= !held[OUT] || (level >= 0 && level <= 62 && cells > 0 && views[OUT].len / 8 % cells == 0);
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "columns must be of the same length, and out whole rows of cells");
        goto done;
    }
    chosen.call = views[CALL].buf, chosen.row_of = views[ROW_OF].buf, chosen.calls = views[ROW_OF].len / 4;
    chosen.rank = held[RANK] ? views[RANK].buf : NULL, chosen.in_row = in_row;
    chosen.depth = held[DEPTH] ? views[DEPTH].buf : NULL;
    chosen.moved = held[MOVED] ? views[MOVED].buf : NULL;
    chosen.carried = held[MOVED] ? views[CARRIED].buf : NULL;
    chosen.bits = held[MOVED] ? views[BITS].buf : NULL;
    spread_job job = {.start = views[START].buf, .duration = views[DURATION].buf, .events = views[START].len / 8};
    int64_t low = 0, high = 0;
    Py_ssize_t misfit = -1;
    int found = 0;
    if (held[OUT]) {
        job.level = level, job.first = first, job.cells = cells;
        job.out = views[OUT].buf, job.rows = views[OUT].len / 8 / cells;
    }
    Py_BEGIN_ALLOW_THREADS
    if (held[OUT])
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
    for (int i = 0; i < ARRAYS; i++)
        if (held[i])
            PyBuffer_Release(&views[i]);
    return result;
}

/* The index of the first event whose group has no row in `out`, or -1. */
static Py_ssize_t count_events(const uint16_t *group, const int64_t *duration, Py_ssize_t events, int64_t *out,
                               Py_ssize_t groups)
{
    for (Py_ssize_t i = 0; i < events; i++) {
        if (group[i] >= groups || duration[i] < 0)
            return i;
        out[(Py_ssize_t)group[i] * ENSIO_BIN_COUNT + ensio_bin((uint64_t)duration[i])]++;
    }
    return -1;
}

static PyObject *count_bins(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *group_object, *duration_object, *out_object, *result = NULL;
    Py_buffer group, duration, out;
    if (!PyArg_ParseTuple(args, "OOO", &group_object, &duration_object, &out_object))
        return NULL;
    if (get_array(group_object, &group, 2, 0, "group") != 0)
        return NULL;
    if (get_array(duration_object, &duration, 8, 0, "duration") != 0)
        goto release_group;
    if (get_array(out_object, &out, 8, PyBUF_WRITABLE, "out") != 0)
        goto release_duration;
    const Py_ssize_t events = group.len / 2, groups = out.len / 8 / ENSIO_BIN_COUNT;
    if (duration.len / 8 != events || groups * ENSIO_BIN_COUNT * 8 != out.len) {
        PyErr_SetString(PyExc_ValueError, "group and duration must be equally long, and out whole rows of bins");
        goto release_out;
    }
    Py_ssize_t misfit;
    Py_BEGIN_ALLOW_THREADS
    misfit = count_events(group.buf, duration.buf, events, out.buf, groups);
    Py_END_ALLOW_THREADS
    if (misfit >= 0)
        PyErr_Format(PyExc_IndexError, "event %zd has no row in out, or a negative duration", misfit);
    else
        result = Py_NewRef(Py_None);
release_out:
    PyBuffer_Release(&out);
release_duration:
    PyBuffer_Release(&duration);
release_group:
    PyBuffer_Release(&group);
    return result;
}

/* What the durations of each group add up to: rows of `counts`, and entries of the others. */
typedef struct {
    const int64_t *key, *duration, *cuts; /* the group of a call: how many cuts are not above its key */
    const uint8_t *taken;                 /* 0: a call is left out; NULL: none is */
    Py_ssize_t events, groups;
    int64_t *counts, *least, *most;
    double *sums;      /* of the durations, and of their squares */
    int32_t *apart;    /* gets the positions of the calls in groups of odd numbers; NULL: nobody asks */
    Py_ssize_t *found; /* how many there are */
} group_job;

/* Group of a key: how many cuts are not above it. */
static Py_ssize_t group_of(const group_job *job, int64_t key)
{
    Py_ssize_t low = 0, high = job->groups - 1;
    while (low < high) {
        const Py_ssize_t middle = low + (high - low) / 2;
        if (job->cuts[middle] <= key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The index of the first event with a negative duration, or -1. Calls of a group mostly follow each other: what they add
 * up to is kept apart, and added when another group begins. */
static Py_ssize_t count_group_events(const group_job *job)
{
    Py_ssize_t i = 0;
    while (i < job->events) {
        const Py_ssize_t group = group_of(job, job->key[i]);
        const int64_t from = group ? job->cuts[group - 1] : INT64_MIN;
        const int is_last = group == job->groups - 1;
        const int64_t to = is_last ? INT64_MAX : job->cuts[group];
        int64_t *const counts = job->counts + group * ENSIO_BIN_COUNT;
        int64_t least = INT64_MAX, most = -1, duration = 0;
        double sum = 0, squares = 0;
        for (; i < job->events; i++) {
            const int64_t key = job->key[i];
            if (key < from || (key >= to && !is_last))
                break;
            if (job->taken && !job->taken[i])
                continue;
            duration = job->duration[i];
            if (duration < 0)
                break;
            counts[ensio_bin((uint64_t)duration)]++;
            least = duration < least ? duration : least;
            most = duration > most ? duration : most;
            const double real = (double)duration;
            sum += real;
            squares += real * real;
            if (job->apart && group % 2)
                job->apart[(*job->found)++] = (int32_t)i;
        }
        job->least[group] = least < job->least[group] ? least : job->least[group];
        job->most[group] = most > job->most[group] ? most : job->most[group];
        job->sums[2 * group] += sum;
        job->sums[2 * group + 1] += squares;
        if (duration < 0)
            return i;
    }
    return -1;
}

static PyObject *count_groups(PyObject *module, PyObject *args)
{
    (void)module;
    enum { KEY, DURATION, TAKEN, CUTS, COUNTS, LEAST, MOST, SUMS, APART, ARRAYS };
    static const char *const names[ARRAYS] = {"key",   "duration", "taken", "cuts", "counts",
                                              "least", "most",     "sums",  "apart"};
    PyObject *objects[ARRAYS], *result = NULL;
    Py_buffer views[ARRAYS];
    int held[ARRAYS] = {0};
    if (!PyArg_ParseTuple(args, "OOOOOOOOO", &objects[KEY], &objects[DURATION], &objects[TAKEN], &objects[CUTS],
                          &objects[COUNTS], &objects[LEAST], &objects[MOST], &objects[SUMS], &objects[APART]))
        return NULL;
    for (int i = 0; i < ARRAYS; i++) {
        if ((i == TAKEN || i == APART) && objects[i] == Py_None)
            continue;
        if (get_array(objects[i], &views[i], i == TAKEN ? 1 : i == APART ? 4 : 8, i >= COUNTS ? PyBUF_WRITABLE : 0, names[i]) != 0)
            goto done;
        held[i] = 1;
    }
    const Py_ssize_t events = views[KEY].len / 8, groups = views[CUTS].len / 8 + 1;
    if (views[DURATION].len / 8 != events || (held[TAKEN] && views[TAKEN].len != events) ||
        views[COUNTS].len / 8 != groups * ENSIO_BIN_COUNT || views[LEAST].len / 8 != groups ||
        views[MOST].len / 8 != groups || views[SUMS].len / 8 != 2 * groups ||
        (held[APART] && (views[APART].len / 4 != events || events > INT32_MAX))) {
        PyErr_SetString(PyExc_ValueError, "arrays of events, and those of groups, must be equally long");
        goto done;
    }
    Py_ssize_t found = 0;
    const group_job job = {.key = views[KEY].buf,
                           .duration = views[DURATION].buf,
                           .cuts = views[CUTS].buf,
                           .taken = held[TAKEN] ? views[TAKEN].buf : NULL,
                           .events = events,
                           .groups = groups,
                           .counts = views[COUNTS].buf,
                           .least = views[LEAST].buf,
                           .most = views[MOST].buf,
                           .apart = held[APART] ? views[APART].buf : NULL,
                           .found = &found,
                           .sums = views[SUMS].buf};
    Py_ssize_t misfit;
    Py_BEGIN_ALLOW_THREADS
    misfit = count_group_events(&job);
    Py_END_ALLOW_THREADS
    if (misfit >= 0)
        PyErr_Format(PyExc_IndexError, "event %zd has a negative duration", misfit);
    else
        result = PyLong_FromSsize_t(found);
done:
    for (int i = 0; i < ARRAYS; i++)
        if (held[i])
            PyBuffer_Release(&views[i]);
    return result;
}

/* Counts durations in seconds, rounded to whole ns; the index of the first one that cannot be counted, or -1.
 * `stats`: least and largest, sum, and sum of squares of the differences to stats[4]. */
static Py_ssize_t count_second_events(const double *seconds, Py_ssize_t events, double limit, int64_t *out,
                                      double *stats)
{
    const double to_integer = 6755399441055744.0; /* 1.5 * 2**52: what is added to it loses its fraction */
    double least = stats[0], most = stats[1], sum = stats[2], squares = stats[3];
    const double reference = stats[4];
    for (Py_ssize_t i = 0; i < events; i++) {
        const double value = seconds[i];
        if (!(value >= 0 && value < limit))
            return i;
        const double ns = value * 1e9;
        /* From 2**51 on the sum would round to even ones; and from 2**52 on there is no fraction. */
        const double whole = ns < 2251799813685248.0 ? (ns + to_integer) - to_integer : rint(ns);
        out[ensio_bin((uint64_t)whole)]++;
        least = value < least ? value : least;
        most = value > most ? value : most;
        const double beyond = value - reference;
        sum += beyond;
        squares += beyond * beyond;
    }
    stats[0] = least, stats[1] = most, stats[2] = sum, stats[3] = squares;
    return -1;
}

static PyObject *count_seconds(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *seconds_object, *out_object, *stats_object, *result = NULL;
    Py_buffer seconds, out, stats;
    double limit;
    if (!PyArg_ParseTuple(args, "OdOO", &seconds_object, &limit, &out_object, &stats_object))
        return NULL;
    if (get_array(seconds_object, &seconds, 8, 0, "seconds") != 0)
        return NULL;
    if (get_array(out_object, &out, 8, PyBUF_WRITABLE, "out") != 0)
        goto release_seconds;
    if (get_array(stats_object, &stats, 8, PyBUF_WRITABLE, "stats") != 0)
        goto release_out;
    if (out.len / 8 != ENSIO_BIN_COUNT || stats.len / 8 != 5 || !(limit <= 9e9)) {
        PyErr_SetString(PyExc_ValueError, "out must be a row of bins, stats five numbers, and limit below 9e9 s");
        goto release_stats;
    }
    Py_ssize_t misfit;
    Py_BEGIN_ALLOW_THREADS
    misfit = count_second_events(seconds.buf, seconds.len / 8, limit, out.buf, stats.buf);
    Py_END_ALLOW_THREADS
    result = PyLong_FromSsize_t(misfit);
release_stats:
    PyBuffer_Release(&stats);
release_out:
    PyBuffer_Release(&out);
release_seconds:
    PyBuffer_Release(&seconds);
    return result;
}

static PyMethodDef methods[] = {{"spread", spread, METH_VARARGS, NULL},
                                {"spread_calls", spread_calls, METH_VARARGS, NULL},
                                {"count_bins", count_bins, METH_VARARGS, NULL},
                                {"count_groups", count_groups, METH_VARARGS, NULL},
                                {"count_seconds", count_seconds, METH_VARARGS, NULL},
                                {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT, .m_name = "_kernels", .m_size = 0, .m_methods = methods};

PyMODINIT_FUNC PyInit__kernels(void)
{
    return PyModule_Create(&definition);
}
