/* From events as they lie in spools to columns. columns.py documents the functions, and has the same in NumPy; results are
 * equal to the last bit. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include <ensio/event.h>

enum { RANK, THREAD, CALL, DEPTH, CARRIED, FILE_NUMBER, OFFSET, REQUESTED, MOVED, ERROR, START, DURATION, COLUMNS };

enum { SOME_EVENTS = 256 };

static const int widths[COLUMNS] = {4, 2, 2, 1, 1, 4, 8, 8, 8, 2, 8, 8};

typedef struct {
    const struct ensio_event *events;
    Py_ssize_t count;
    uint64_t first_ticks;
    double ns_per_tick;
    int64_t begin_ns, most_ticks, most_moved;
    uint32_t rank;
    uint16_t thread;
    const uint16_t *calls;
    const uint32_t *files;
    Py_ssize_t last_call, last_file;
    void *columns[COLUMNS]; /* NULL: not wanted */
    Py_ssize_t unknown_calls, unknown_files;
} job;

static inline int64_t nanoseconds(int64_t ticks, double ns_per_tick)
{
    const double to_integer = 6755399441055744.0; /* 1.5 * 2**52: what is added to it loses its fraction */
    const double ns = (double)ticks * ns_per_tick;
    return (int64_t)(fabs(ns) < 2251799813685248.0 ? (ns + to_integer) - to_integer : rint(ns));
}

/* Whether a time or an amount of data is impossible: then nothing else is done. */
static int decode_times(const job *job)
{
    int64_t *const start = job->columns[START], *const duration = job->columns[DURATION];
    const uint64_t most = (uint64_t)job->most_ticks;
    int damaged = 0;
    for (Py_ssize_t i = 0; i < job->count; i++) {
        const struct ensio_event *const event = &job->events[i];
        const uint64_t since = event->start - job->first_ticks;
        damaged |= since + most > 2 * most || event->duration > most || event->moved > job->most_moved;
        start[i] = (int64_t)since;
        duration[i] = (int64_t)event->duration;
    }
    if (damaged)
        return 1;
    if (job->ns_per_tick != 1.0)
        for (Py_ssize_t i = 0; i < job->count; i++) {
            start[i] = nanoseconds(start[i], job->ns_per_tick);
            duration[i] = nanoseconds(duration[i], job->ns_per_tick);
        }
    for (Py_ssize_t i = 0; i < job->count; i++)
        start[i] += job->begin_ns;
    return 0;
}

#define EACH(type, column, value)                                                                                    \
    if (job->columns[column]) {                                                                                      \
        type *const out = job->columns[column];                                                                      \
        for (Py_ssize_t i = 0; i < job->count; i++) {                                                                \
            const struct ensio_event *const event = &job->events[i];                                                 \
            (void)event;                                                                                             \
            out[i] = value;                                                                                          \
        }                                                                                                            \
    }

static void decode_numbers(job *job)
{
    const Py_ssize_t last_call = job->last_call, last_file = job->last_file;
    EACH(uint32_t, RANK, job->rank)
    EACH(uint16_t, THREAD, job->thread)
    EACH(uint16_t, CALL, job->calls[event->call < last_call ? event->call : last_call])
    EACH(uint8_t, DEPTH, event->depth)
    EACH(uint8_t, CARRIED, event->flags)
    EACH(uint32_t, FILE_NUMBER, job->files[event->file < last_file ? event->file : last_file])
    EACH(int64_t, OFFSET, event->offset)
    EACH(uint64_t, REQUESTED, event->requested)
    EACH(int64_t, MOVED, event->moved < 0 ? -1 : event->moved)
    EACH(uint16_t, ERROR, event->moved >= 0 ? 0 : event->moved < -UINT16_MAX ? UINT16_MAX : (uint16_t)-event->moved)
    const uint16_t *const call = job->columns[CALL];
    const uint32_t *const file = job->columns[FILE_NUMBER];
    for (Py_ssize_t i = 0; i < job->count; i++)
        job->unknown_calls += !call[i];
    for (Py_ssize_t i = 0; file && i < job->count; i++)
        job->unknown_files += job->events[i].file && !file[i];
}

/* Some events at a time, which stay in the processor's cache from column to column. */
static int decode_all(job *whole)
{
    for (Py_ssize_t done = 0; done < whole->count; done += SOME_EVENTS) {
        job some = *whole;
        some.events += done;
        some.count = whole->count - done < SOME_EVENTS ? whole->count - done : SOME_EVENTS;
        some.unknown_calls = some.unknown_files = 0;
        for (int i = 0; i < COLUMNS; i++)
            if (some.columns[i])
                some.columns[i] = (char *)some.columns[i] + done * widths[i];
        if (decode_times(&some))
            return 1;
        decode_numbers(&some);
        whole->unknown_calls += some.unknown_calls;
        whole->unknown_files += some.unknown_files;
    }
    return 0;
}

static int get_bytes(PyObject *object, Py_buffer *view, int flags)
{
    return PyObject_GetBuffer(object, view, PyBUF_C_CONTIGUOUS | flags);
}

static PyObject *decode(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *objects[3 + COLUMNS], *tuple, *result = NULL;
    Py_buffer views[3 + COLUMNS];
    int held[3 + COLUMNS] = {0}, damaged;
    unsigned long long first_ticks;
    long long begin_ns, most_ticks, most_moved;
    unsigned rank, thread;
    job job = {0};
    if (!PyArg_ParseTuple(args, "OOOO!KdLLLII", &objects[0], &objects[1], &objects[2], &PyTuple_Type, &tuple,
                          &first_ticks, &job.ns_per_tick, &begin_ns, &most_ticks, &most_moved, &rank, &thread))
        return NULL;
    if (PyTuple_Size(tuple) != COLUMNS) {
        PyErr_SetString(PyExc_ValueError, "every column is given, or None in its place");
        return NULL;
    }
    for (int i = 0; i < 3 + COLUMNS; i++) {
        if (i >= 3 && (objects[i] = PyTuple_GetItem(tuple, i - 3)) == Py_None)
            continue;
        if (get_bytes(objects[i], &views[i], i >= 3 ? PyBUF_WRITABLE : 0) != 0)
            goto done;
        held[i] = 1;
    }
    job.count = views[0].len / (Py_ssize_t)sizeof(struct ensio_event);
    job.last_call = views[1].len / 2 - 1, job.last_file = views[2].len / 4 - 1;
    int fits = job.last_call >= 0 && job.last_file >= 0 && most_ticks >= 0 && most_ticks < (1LL << 62) &&
               held[3 + CALL] && held[3 + START] && held[3 + DURATION];
    for (int i = 0; i < COLUMNS; i++)
        if (held[3 + i]) {
            job.columns[i] = views[3 + i].buf;
            fits &= views[3 + i].itemsize == widths[i] && views[3 + i].len / widths[i] >= job.count;
        }
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "the columns do not fit the events");
        goto done;
    }
    job.events = views[0].buf, job.calls = views[1].buf, job.files = views[2].buf;
    job.first_ticks = first_ticks, job.begin_ns = begin_ns, job.most_ticks = most_ticks, job.most_moved = most_moved;
    job.rank = rank, job.thread = (uint16_t)thread;
    Py_BEGIN_ALLOW_THREADS
    damaged = decode_all(&job);
    Py_END_ALLOW_THREADS
    result = damaged ? Py_NewRef(Py_None) : Py_BuildValue("nn", job.unknown_calls, job.unknown_files);
done:
    for (int i = 0; i < 3 + COLUMNS; i++)
        if (held[i])
            PyBuffer_Release(&views[i]);
    return result;
}

static PyObject *compact(PyObject *module, PyObject *object)
{
    (void)module;
    Py_buffer view;
    if (get_bytes(object, &view, PyBUF_WRITABLE) != 0)
        return NULL;
    struct ensio_event *const events = view.buf;
    const Py_ssize_t count = view.len / (Py_ssize_t)sizeof *events;
    Py_ssize_t completed = 0;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < count; i++)
        if (events[i].call) {
            if (completed < i)
                events[completed] = events[i];
            completed++;
        }
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&view);
    return PyLong_FromSsize_t(completed);
}

static PyMethodDef methods[] = {
    {"decode", decode, METH_VARARGS, NULL}, {"compact", compact, METH_O, NULL}, {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT, .m_name = "_columns", .m_size = 0, .m_methods = methods};

PyMODINIT_FUNC PyInit__columns(void)
{
    return PyModule_Create(&definition);
}
