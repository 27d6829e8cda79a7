/* Decode events of spools into columns. window_decoder.py documents the functions. */
#include "_compiled.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <ensio/event.h>

enum {
    RANK,
    THREAD,
    CALL,
    DEPTH,
    CARRIED,
    FILE_NUMBER,
    OFFSET,
    REQUESTED,
    MOVED,
    ERROR,
    START,
    DURATION,
    SITE,
    COLUMNS
};

enum { TABLES = 4 }; /* arguments before the columns: events, and numbers of calls, files and sites */

enum {
    SOME_EVENTS = 256,  /* events that are decoded column by column while they are in the L1 cache */
    READ_EVENTS = 2048, /* events that are read at a time and stay in the L2 cache */
};

static const int widths[COLUMNS] = {4, 2, 2, 1, 1, 4, 8, 8, 8, 2, 8, 8, 2};

typedef struct job {
    const struct ensio_event *events;
    Py_ssize_t count;
    uint64_t first_ticks;
    double ns_per_tick;
    int64_t begin_ns, most_ticks, most_moved;
    uint32_t rank;
    uint16_t thread;
    const uint16_t *calls;
    const uint32_t *files;
    const uint16_t *sites;
    int wide_files; /* 1: an old event, in which the number of the file has 32 bits and there is no site */
    Py_ssize_t last_call, last_file, last_site;
    void *columns[COLUMNS]; /* NULL: not wanted */
    Py_ssize_t unknown_calls, unknown_files;
} job;

/* 1.5 * 2**52: a double of this magnitude has no fraction, and its low bits are the integer that was added. */
#define TO_INTEGER 6755399441055744.0
#define TO_INTEGER_BITS 0x4338000000000000LL
#define EXACT ((int64_t)1 << 51) /* valid for numbers below this */

static inline int64_t nanoseconds(int64_t ticks, double ns_per_tick)
{
    const double ns = (double)ticks * ns_per_tick;
    return (int64_t)(fabs(ns) < (double)EXACT ? (ns + TO_INTEGER) - TO_INTEGER : rint(ns));
}

/* The same for ticks and nanoseconds below EXACT, with operations that compilers can vectorise. */
static inline int64_t few_nanoseconds(int64_t ticks, double ns_per_tick)
{
    double real;
    int64_t bits = (int64_t)((uint64_t)ticks + TO_INTEGER_BITS);
    memcpy(&real, &bits, sizeof real);
    real = (real - TO_INTEGER) * ns_per_tick + TO_INTEGER;
    memcpy(&bits, &real, sizeof bits);
    return (int64_t)((uint64_t)bits - TO_INTEGER_BITS);
}

static void to_nanoseconds(int64_t *restrict start, int64_t *restrict duration, Py_ssize_t count, uint64_t bits,
                           double ns_per_tick)
{
    if (bits < EXACT && (double)(bits + 1) * ns_per_tick < (double)EXACT) {
        for (Py_ssize_t i = 0; i < count; i++)
            start[i] = few_nanoseconds(start[i], ns_per_tick);
        for (Py_ssize_t i = 0; i < count; i++)
            duration[i] = few_nanoseconds(duration[i], ns_per_tick);
    } else {
        for (Py_ssize_t i = 0; i < count; i++) {
            start[i] = nanoseconds(start[i], ns_per_tick);
            duration[i] = nanoseconds(duration[i], ns_per_tick);
        }
    }
}

/* Decode times; return 1, without decoding, if a time or a number of bytes is impossible. */
static int decode_times(const job *job)
{
    int64_t *const start = job->columns[START], *const duration = job->columns[DURATION];
    /* No call began at tick 0: the beginning of such an event is missing. */
    const uint64_t most = (uint64_t)job->most_ticks, least = job->first_ticks > 0;
    uint64_t bits = 0; /* the bits that are set in any time */
    int damaged = 0;
    for (Py_ssize_t i = 0; i < job->count; i++) {
        const struct ensio_event *const event = &job->events[i];
        const uint64_t since = event->start - job->first_ticks;
        damaged |=
            since + most > 2 * most || event->start < least || event->duration > most || event->moved > job->most_moved;
        bits |= (since ^ (0 - (since >> 63))) | event->duration;
        start[i] = (int64_t)since;
        duration[i] = (int64_t)event->duration;
    }
    if (damaged)
        return 1;
    if (job->ns_per_tick != 1.0)
        to_nanoseconds(start, duration, job->count, bits, job->ns_per_tick);
    for (Py_ssize_t i = 0; i < job->count; i++)
        start[i] += job->begin_ns;
    return 0;
}

static inline Py_ssize_t file_of(const job *job, const struct ensio_event *event)
{
    return job->wide_files ? event->file | (Py_ssize_t)event->site << 16 : event->file;
}

static inline Py_ssize_t site_of(const job *job, const struct ensio_event *event)
{
    return job->wide_files ? 0 : event->site;
}

static inline Py_ssize_t at_most(Py_ssize_t number, Py_ssize_t last)
{
    return number < last ? number : last;
}

#define EACH(type, column, value) \
    if (job->columns[column]) { \
        type *const out = job->columns[column]; \
        for (Py_ssize_t i = 0; i < job->count; i++) { \
            const struct ensio_event *const event = &job->events[i]; \
            (void)event; \
            out[i] = value; \
        } \
    }

static void decode_numbers(job *job)
{
    const Py_ssize_t last_call = job->last_call, last_file = job->last_file, last_site = job->last_site;
    EACH(uint32_t, RANK, job->rank)
    EACH(uint16_t, THREAD, job->thread)
    EACH(uint16_t, CALL, job->calls[at_most(event->call, last_call)])
    EACH(uint8_t, DEPTH, event->depth)
    EACH(uint8_t, CARRIED, event->flags)
    EACH(uint32_t, FILE_NUMBER, job->files[at_most(file_of(job, event), last_file)])
    EACH(int64_t, OFFSET, event->offset)
    EACH(uint64_t, REQUESTED, event->requested)
    EACH(int64_t, MOVED, event->moved < 0 ? -1 : event->moved)
    EACH(uint16_t, ERROR, event->moved >= 0 ? 0 : event->moved <= -ENSIO_NO_ERRNO ? 0 : (uint16_t)-event->moved)
    EACH(uint16_t, SITE, job->sites[at_most(site_of(job, event), last_site)])
    const uint16_t *const call = job->columns[CALL];
    const uint32_t *const file = job->columns[FILE_NUMBER];
    for (Py_ssize_t i = 0; i < job->count; i++)
        job->unknown_calls += !call[i];
    for (Py_ssize_t i = 0; file && i < job->count; i++)
        job->unknown_files += file_of(job, &job->events[i]) && !file[i];
}

/* Decode blocks of events, which stay in the L1 cache from column to column. */
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

/* Move completed events to the front, and return their number. Slots are claimed in order: one without an event, and
 * not emptied, is lost if there is an event behind it, or if it is one of the first `summed`. `open` counts those of
 * which neither is known yet. */
static Py_ssize_t move_completed(struct ensio_event *events, Py_ssize_t count, Py_ssize_t summed, Py_ssize_t *open,
                                 Py_ssize_t *lost)
{
    Py_ssize_t completed = 0;
    for (Py_ssize_t i = 0; i < count; i++)
        if (events[i].call) {
            *lost += *open, *open = 0;
            if (completed < i)
                events[completed] = events[i];
            completed++;
        } else if (!(events[i].flags & ENSIO_SUMMED_ONLY)) {
            *(i < summed ? lost : open) += 1;
        }
    return completed;
}

static int get_bytes(PyObject *object, Py_buffer *view, int flags)
{
    return PyObject_GetBuffer(object, view, PyBUF_C_CONTIGUOUS | flags);
}

/* The arguments that `decode_events` and `read_window` share. */
typedef struct {
    job job;
    Py_buffer views[TABLES + COLUMNS];
    int held[TABLES + COLUMNS];
    Py_ssize_t room; /* capacity of the shortest column, events */
} request;

static void release(request *request)
{
    for (int i = 0; i < TABLES + COLUMNS; i++)
        if (request->held[i])
            PyBuffer_Release(&request->views[i]);
}

/* Parse the shared arguments: the buffer of events, the numbers of calls, files and sites, the columns, and a tuple of
 * scalars. */
static int get_request(request *request, PyObject *raw, PyObject *const tables[TABLES - 1], PyObject *columns,
                       PyObject *numbers, int raw_flags)
{
    job *const job = &request->job;
    unsigned long long first_ticks;
    long long begin_ns, most_ticks, most_moved;
    unsigned rank, thread;
    if (!PyArg_ParseTuple(numbers, "KdLLLIIp", &first_ticks, &job->ns_per_tick, &begin_ns, &most_ticks, &most_moved,
                          &rank, &thread, &job->wide_files))
        return -1;
    if (PyTuple_Size(columns) != COLUMNS) {
        PyErr_SetString(PyExc_ValueError, "every column is given, or None in its place");
        return -1;
    }
    for (int i = 0; i < TABLES + COLUMNS; i++) {
        PyObject *const object = i == 0 ? raw : i < TABLES ? tables[i - 1] : PyTuple_GetItem(columns, i - TABLES);
        if (i >= TABLES && object == Py_None)
            continue;
        if (get_bytes(object, &request->views[i], i >= TABLES ? PyBUF_WRITABLE : i == 0 ? raw_flags : 0) != 0)
            return -1;
        request->held[i] = 1;
    }
    Py_buffer *const views = request->views;
    job->last_call = views[1].len / 2 - 1, job->last_file = views[2].len / 4 - 1;
    job->last_site = views[3].len / 2 - 1;
    int fits = job->last_call >= 0 && job->last_file >= 0 && job->last_site >= 0 && most_ticks >= 0 &&
               most_ticks < (1LL << 62) && request->held[TABLES + CALL] && request->held[TABLES + START] &&
               request->held[TABLES + DURATION];
    request->room = PY_SSIZE_T_MAX;
    for (int i = 0; i < COLUMNS; i++)
        if (request->held[TABLES + i]) {
            job->columns[i] = views[TABLES + i].buf;
            fits &= views[TABLES + i].itemsize == widths[i];
            const Py_ssize_t length = views[TABLES + i].len / widths[i];
            request->room = length < request->room ? length : request->room;
        }
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "the columns do not fit the events");
        return -1;
    }
    job->calls = views[1].buf, job->files = views[2].buf, job->sites = views[3].buf;
    job->first_ticks = first_ticks, job->begin_ns = begin_ns, job->most_ticks = most_ticks,
    job->most_moved = most_moved;
    job->rank = rank, job->thread = (uint16_t)thread;
    return 0;
}

static PyObject *decode_events(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *raw, *tables[TABLES - 1], *columns, *numbers, *result = NULL;
    request request = {0};
    int damaged;
    if (!PyArg_ParseTuple(args, "OOOOO!O!", &raw, &tables[0], &tables[1], &tables[2], &PyTuple_Type, &columns,
                          &PyTuple_Type, &numbers))
        return NULL;
    if (get_request(&request, raw, tables, columns, numbers, 0) != 0)
        goto done;
    job *const job = &request.job;
    job->events = request.views[0].buf;
    job->count = request.views[0].len / (Py_ssize_t)sizeof(struct ensio_event);
    if (job->count > request.room) {
        PyErr_SetString(PyExc_ValueError, "the columns do not fit the events");
        goto done;
    }
    Py_BEGIN_ALLOW_THREADS
    damaged = decode_all(job);
    Py_END_ALLOW_THREADS
    result = damaged ? Py_NewRef(Py_None) : Py_BuildValue("nn", job->unknown_calls, job->unknown_files);
done:
    release(&request);
    return result;
}

/* The progress of `read_window`. */
typedef struct {
    Py_ssize_t slots, events, left, open, lost;
    int error;
} progress;

/* Read and decode one buffer after another until the slots or the columns are exhausted. Return early after a buffer
 * without events (the caller may skip a hole), after a damaged buffer (which then has `left` events), and at the end of
 * the file. */
static progress read_events(job *job, int descriptor, off_t from, Py_ssize_t slots, Py_ssize_t summed, Py_ssize_t open,
                            Py_ssize_t position, Py_ssize_t room, struct ensio_event *buffer, Py_ssize_t most)
{
    progress done = {.open = open};
    struct job some = *job;
    some.unknown_calls = some.unknown_files = 0;
    while (done.slots < slots && done.events < room) {
        Py_ssize_t wanted = slots - done.slots < most ? slots - done.slots : most;
        wanted = wanted < room - done.events ? wanted : room - done.events;
        const ssize_t length = pread(descriptor, buffer, (size_t)wanted * sizeof *buffer,
                                     from + (off_t)(done.slots * (Py_ssize_t)sizeof *buffer));
        if (length < 0 && errno == EINTR)
            continue;
        if (length < 0)
            done.error = errno;
        const Py_ssize_t present = length < 0 ? 0 : length / (Py_ssize_t)sizeof *buffer;
        some.count = move_completed(buffer, present, summed - done.slots, &done.open, &done.lost);
        done.slots += present;
        some.events = buffer;
        for (int i = 0; i < COLUMNS; i++)
            if (job->columns[i])
                some.columns[i] = (char *)job->columns[i] + (position + done.events) * widths[i];
        if (some.count && decode_all(&some)) {
            done.left = some.count;
            break;
        }
        done.events += some.count;
        if (!some.count || present < wanted)
            break;
    }
    job->unknown_calls = some.unknown_calls, job->unknown_files = some.unknown_files;
    return done;
}

static PyObject *read_window(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *raw, *tables[TABLES - 1], *columns, *numbers, *result = NULL;
    request request = {0};
    int descriptor;
    long long from;
    Py_ssize_t slots, summed, open, position, room;
    if (!PyArg_ParseTuple(args, "iL(nnn)nnOOOOO!O!", &descriptor, &from, &slots, &summed, &open, &position, &room, &raw,
                          &tables[0], &tables[1], &tables[2], &PyTuple_Type, &columns, &PyTuple_Type, &numbers))
        return NULL;
    if (get_request(&request, raw, tables, columns, numbers, PyBUF_WRITABLE) != 0)
        goto done;
    Py_ssize_t most = request.views[0].len / (Py_ssize_t)sizeof(struct ensio_event);
    most = most < READ_EVENTS ? most : READ_EVENTS;
    if (most < 1 || from < 0 || slots < 0 || position < 0 || room < 0 || position > request.room - room) {
        PyErr_SetString(PyExc_ValueError, "the columns do not fit the events");
        goto done;
    }
    progress found;
    Py_BEGIN_ALLOW_THREADS
    found = read_events(&request.job, descriptor, (off_t)from, slots, summed, open, position, room,
                        request.views[0].buf, most);
    Py_END_ALLOW_THREADS
    if (found.error) {
        errno = found.error;
        PyErr_SetFromErrno(PyExc_OSError);
        goto done;
    }
    result = Py_BuildValue("nnnnnnn", found.slots, found.events, found.left, found.open, found.lost,
                           request.job.unknown_calls, request.job.unknown_files);
done:
    release(&request);
    return result;
}

static PyObject *compact_events(PyObject *module, PyObject *object)
{
    (void)module;
    Py_buffer view;
    if (get_bytes(object, &view, PyBUF_WRITABLE) != 0)
        return NULL;
    struct ensio_event *const events = view.buf;
    const Py_ssize_t count = view.len / (Py_ssize_t)sizeof *events;
    Py_ssize_t completed, ignored = 0;
    Py_BEGIN_ALLOW_THREADS
    completed = move_completed(events, count, 0, &ignored, &ignored);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&view);
    return PyLong_FromSsize_t(completed);
}

/* Ticks of ENSIO_CLOCK_TSC; there is no such clock on other processors. */
static PyObject *read_counter(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
#if defined(__x86_64__)
    return PyLong_FromUnsignedLongLong(__builtin_ia32_rdtsc());
#else
    return PyLong_FromLong(0);
#endif
}

PyMethodDef column_functions[] = {{"read_counter", read_counter, METH_NOARGS, NULL},
                                  {"decode_events", decode_events, METH_VARARGS, NULL},
                                  {"read_window", read_window, METH_VARARGS, NULL},
                                  {"compact_events", compact_events, METH_O, NULL},
                                  {NULL, NULL, 0, NULL}};
