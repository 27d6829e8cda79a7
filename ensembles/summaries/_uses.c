/* Uses of files by threads. open_time.py documents the function. */
#include "_compiled.h"
#include "summaries/arrays.h"

#include <stdint.h>
#include <stdlib.h>

enum { NUMBERS = 9, NO_MEMORY = -2, OPENS = 1, CLOSES = 2, FLUSHES = 3 };

/* A use: successive transfers and flushes of a thread on a file; or an open or a close. */
typedef struct {
    int64_t rank, thread, file, start, end, moved[2], closed, opened;
} use_row;

typedef struct {
    const uint32_t *rank, *file;
    const uint16_t *thread, *call;
    const uint8_t *carried, *depth, *bits;
    const int64_t *moved, *start, *duration;
    const int8_t *direction_of, *edge_of; /* by call */
    Py_ssize_t events, calls;
} use_job;

typedef struct {
    use_row *rows;
    size_t used, room;
} use_list;

static use_row *add_use(use_list *list)
{
    if (list->used == list->room) {
        const size_t room = list->room ? 2 * list->room : 256;
        use_row *rows = realloc(list->rows, room * sizeof *rows);
        if (!rows)
            return NULL;
        list->rows = rows, list->room = room;
    }
    return &list->rows[list->used++];
}

static inline int64_t sum_of(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

/* Join the uses of a chunk. Return the first event of an unknown call, -1, or NO_MEMORY. Overflow wraps, as in NumPy.
 */
static Py_ssize_t join_events(const use_job *job, use_list *list)
{
    use_row *last = NULL;
    int ends_here = 1; /* the next event begins a use */
    for (Py_ssize_t i = 0; i < job->events; i++) {
        const uint16_t call = job->call[i];
        if (call >= job->calls)
            return i;
        const int64_t moved = job->moved[i];
        const int8_t edge = job->edge_of[call];
        const int direction = moved > 0 && !(job->carried[i] & job->bits[call]) ? job->direction_of[call] : -1;
        if (direction < 0 && (!edge || job->depth[i] || moved < 0 || !job->file[i]))
            continue;
        const int is_edge = edge == OPENS || edge == CLOSES;
        const int64_t start = job->start[i], end = sum_of(start, job->duration[i]);
        if (ends_here || is_edge || last->rank != job->rank[i] || last->thread != job->thread[i] ||
            last->file != job->file[i]) {
            last = add_use(list);
            if (!last)
                return NO_MEMORY;
            *last = (use_row){.rank = job->rank[i],
                              .thread = job->thread[i],
                              .file = job->file[i],
                              .start = INT64_MAX, /* a flush may end a session, and begins none */
                              .end = end,
                              .closed = edge == CLOSES,
                              .opened = edge == OPENS};
        }
        ends_here = is_edge;
        last->start = edge != FLUSHES && start < last->start ? start : last->start;
        last->end = end > last->end ? end : last->end;
        if (direction >= 0)
            last->moved[direction] = sum_of(last->moved[direction], moved);
    }
    return -1;
}

/* The rows as a matrix in Python's bytes, columns one after the other. */
static PyObject *columns_of_uses(const use_list *list)
{
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(list->used * NUMBERS * sizeof(int64_t)));
    if (!bytes)
        return NULL;
    int64_t *const out = (int64_t *)(void *)PyBytes_AsString(bytes);
    for (size_t row = 0; row < list->used; row++) {
        const use_row *const use = &list->rows[row];
        const int64_t numbers[NUMBERS] = {use->rank,     use->thread,   use->file,   use->start, use->end,
                                          use->moved[0], use->moved[1], use->closed, use->opened};
        for (int column = 0; column < NUMBERS; column++)
            out[(size_t)column * list->used + row] = numbers[column];
    }
    return bytes;
}

static PyObject *join_uses(PyObject *module, PyObject *args)
{
    (void)module;
    enum { RANK, THREAD, FILE_, CALL, CARRIED, DEPTH, MOVED, START, DURATION, BITS, DIRECTION, EDGE, ARRAYS };
    static const array_kind wanted[ARRAYS] = {
        {"rank", 4, 0},  {"thread", 2, 0}, {"file", 4, 0},     {"call", 2, 0}, {"carried", 1, 0},   {"depth", 1, 0},
        {"moved", 8, 0}, {"start", 8, 0},  {"duration", 8, 0}, {"bits", 1, 0}, {"direction", 1, 0}, {"edge", 1, 0}};
    Py_buffer views[ARRAYS] = {0};
    PyObject *result = NULL;
    use_list list = {0};
    if (get_only_arrays(views, args, wanted, ARRAYS, BITS) != 0)
        goto done;
    const use_job job = {.rank = views[RANK].buf,
                         .thread = views[THREAD].buf,
                         .file = views[FILE_].buf,
                         .call = views[CALL].buf,
                         .carried = views[CARRIED].buf,
                         .depth = views[DEPTH].buf,
                         .moved = views[MOVED].buf,
                         .start = views[START].buf,
                         .duration = views[DURATION].buf,
                         .bits = views[BITS].buf,
                         .direction_of = views[DIRECTION].buf,
                         .edge_of = views[EDGE].buf,
                         .events = length_of(&views[RANK]),
                         .calls = length_of(&views[BITS])};
    int fits = length_of(&views[DIRECTION]) == job.calls && length_of(&views[EDGE]) == job.calls;
    for (Py_ssize_t i = 0; fits && i < job.calls; i++)
        fits = job.direction_of[i] <= 1;
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "each call must have bits, a direction of at most 1, and an edge");
        goto done;
    }
    Py_ssize_t misfit;
    Py_BEGIN_ALLOW_THREADS
    misfit = join_events(&job, &list);
    Py_END_ALLOW_THREADS
    if (misfit == NO_MEMORY)
        PyErr_NoMemory();
    else if (misfit >= 0)
        PyErr_Format(PyExc_IndexError, "the call of event %zd is out of range", misfit);
    else
        result = columns_of_uses(&list);
done:
    release_arrays(views, ARRAYS);
    free(list.rows);
    return result;
}

PyMethodDef use_functions[] = {{"join_uses", join_uses, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};
