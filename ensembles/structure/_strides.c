/* Detect the strided reads of tasks in one loop over their calls. detect.py documents the function. */
#include "_compiled.h"
#include "summaries/processors.h"
#include "_streams.h"

enum { RANK, THREAD, CALL, DEPTH, CARRIED, FILE_NUMBER, OFFSET, MOVED, START, DURATION, COLUMNS };
enum { KIND = COLUMNS, LAYER, SUMS, ORDER, ARRAYS };
enum { OTHER, READ, WRITE, WAIT };
enum { READS, WITH_OFFSET, IO_TIME, READ_TIME, SUM_COUNT };
enum { CARRIED_READ = 1, CARRIED_WRITE = 2 };

static const char *const names[ARRAYS] = {"rank",  "thread", "call",     "depth", "carried", "file", "offset",
                                          "moved", "start",  "duration", "kind",  "layer",   "sums", "order"};
static const Py_ssize_t itemsizes[ARRAYS] = {4, 2, 2, 1, 1, 4, 8, 8, 8, 8, 1, 1, 8, 8};

/* The position of the k-th call. */
static inline Py_ssize_t at(const int64_t *order, Py_ssize_t k)
{
    return order ? (Py_ssize_t)order[k] : k;
}

/* Progress within a rank: writes so far, sums of calls, and the group and stream of the last read. */
typedef struct {
    int64_t written, writing, sums[SUM_COUNT];
    Py_ssize_t group, stream; /* -1: none */
} progress;

/* Sum the times of calls of one function. Such calls are mostly consecutive, and the loop can be vectorised. */
static inline void sum_times(const job *job, const int64_t *order, Py_ssize_t low, Py_ssize_t high, progress *done)
{
    uint64_t time = 0;
    for (Py_ssize_t k = low; k < high; k++) {
        const Py_ssize_t i = at(order, k);
        time += job->depth[i] ? 0 : (uint64_t)job->duration[i];
    }
    if (job->kind[job->call[at(order, low)]] != WAIT)
        add_up(&done->sums[IO_TIME], (int64_t)time);
}

static inline void sum_writes(const job *job, const int64_t *order, Py_ssize_t low, Py_ssize_t high, int64_t *written,
                              int64_t *writing)
{
    uint64_t bytes = 0, time = 0;
    for (Py_ssize_t k = low; k < high; k++) {
        const Py_ssize_t i = at(order, k);
        const int counts = job->moved[i] > 0 && !(job->carried[i] & CARRIED_WRITE);
        bytes += counts ? (uint64_t)job->moved[i] : 0;
        time += counts ? (uint64_t)job->duration[i] : 0;
    }
    add_up(written, (int64_t)bytes);
    add_up(writing, (int64_t)time);
}

static inline void sum_read(const job *job, Py_ssize_t i, progress *done)
{
    const int alone = !(job->carried[i] & CARRIED_READ);
    add_up(&done->sums[READ_TIME], job->depth[i] ? 0 : job->duration[i]);
    done->sums[READS] += alone;
    done->sums[WITH_OFFSET] += alone && job->offset[i] >= 0;
}

/* Find the stream of a read, and make it the last one. */
static stream *next_stream(job *job, Py_ssize_t i, progress *done)
{
    const uint32_t file = job->file[i];
    const uint16_t lane = job->thread[i];
    const uint8_t layer = job->layer[job->call[i]];
    if (done->group < 0 || job->groups.items[done->group].file != file ||
        job->groups.items[done->group].layer != layer) {
        done->group = group_of(job, file, layer);
        done->stream = -1;
        if (done->group < 0)
            return NULL;
    }
    group *const mine = &job->groups.items[done->group];
    if (!mine->ordinal)
        mine->lane = lane;
    mine->several |= mine->lane != lane;
    if (done->stream < 0 || job->streams.items[done->stream].lane != lane)
        done->stream = stream_of(job, done->group, lane);
    return done->stream < 0 ? NULL : &job->streams.items[done->stream];
}

static inline int add_reads(job *job, const int64_t *order, Py_ssize_t low, Py_ssize_t high, progress *done)
{
    for (Py_ssize_t k = low; k < high;) {
        const Py_ssize_t i = at(order, k++);
        if (job->moved[i] <= 0)
            continue;
        sum_read(job, i, done);
        if (job->offset[i] < 0)
            continue;
        stream *const mine = next_stream(job, i, done);
        if (!mine)
            return -1;
        group *const group = &job->groups.items[done->group];
        add_up(&group->bytes, job->moved[i]);
        if (add_read(job, mine, i, ++group->ordinal, done->written, done->writing, 0) != 0)
            return -1;
        /* Consume the calls that continue where this one ends. */
        one_read *const now = &mine->now;
        const int64_t begun = (int64_t)((uint64_t)now->offset + (uint64_t)now->bytes);
        int64_t end = now->end, offset = begun;
        uint64_t time = 0;
        const Py_ssize_t before = k;
        for (; k < high; k++) {
            const Py_ssize_t j = at(order, k);
            if (job->offset[j] != offset || job->moved[j] <= 0 || job->file[j] != job->file[i] ||
                job->thread[j] != job->thread[i] || offset < 0)
                break;
            offset = (int64_t)((uint64_t)offset + (uint64_t)job->moved[j]);
            time += (uint64_t)job->duration[j];
            const int64_t ends = (int64_t)((uint64_t)job->start[j] + (uint64_t)job->duration[j]);
            end = ends > end ? ends : end;
        }
        for (Py_ssize_t each = before; each < k; each++)
            sum_read(job, at(order, each), done);
        const int64_t more = (int64_t)((uint64_t)offset - (uint64_t)begun);
        add_up(&now->bytes, more);
        add_up(&group->bytes, more);
        add_up(&now->duration, (int64_t)time);
        now->end = end, now->calls += (uint32_t)(k - before), group->ordinal += (uint32_t)(k - before);
    }
    return 0;
}

static inline Py_ssize_t end_of_function(const job *job, const int64_t *order, Py_ssize_t k, Py_ssize_t high)
{
    const uint16_t call = job->call[at(order, k)];
    do
        k++;
    while (k < high && job->call[at(order, k)] == call);
    return k;
}

/* Process all calls of a rank by thread, and add them to the sums. */
static inline int look_at_calls(job *job, const int64_t *order, Py_ssize_t low, Py_ssize_t high)
{
    progress done = {.group = -1, .stream = -1};
    for (Py_ssize_t k = low, end; k < high; k = end) {
        const uint8_t kind = job->kind[job->call[at(order, k)]];
        end = end_of_function(job, order, k, high);
        sum_times(job, order, k, end, &done);
        if (kind == WRITE)
            sum_writes(job, order, k, end, &done.written, &done.writing);
        else if (kind == READ && add_reads(job, order, k, end, &done) != 0)
            return -1;
    }
    for (int i = 0; i < SUM_COUNT; i++)
        add_up(&job->sums[i], done.sums[i]);
    return 0;
}

FOR_EACH_PROCESSOR
static int look_at_rank(job *job, Py_ssize_t low, Py_ssize_t high)
{
    /* Two copies: without an order, the compiler knows that calls are contiguous. */
    return job->order ? look_at_calls(job, job->order, low, high) : look_at_calls(job, NULL, low, high);
}

/* Process files again that several threads read through one layer, with the reads of all threads as one stream. */
static int look_at_threads_together(job *job, Py_ssize_t low, Py_ssize_t high)
{
    int64_t written = 0, writing = 0;
    for (Py_ssize_t i = 0; i < job->groups.count; i++)
        job->groups.items[i].ordinal = 0;
    for (Py_ssize_t k = low; k < high; k++) {
        const Py_ssize_t i = at(job->order, k);
        const uint8_t kind = job->kind[job->call[i]];
        if (kind == WRITE)
            sum_writes(job, job->order, k, k + 1, &written, &writing);
        if (kind != READ || job->moved[i] <= 0 || job->offset[i] < 0)
            continue;
        const Py_ssize_t index = group_of(job, job->file[i], job->layer[job->call[i]]);
        if (index < 0)
            return -1;
        group *const mine = &job->groups.items[index];
        mine->ordinal++;
        if (!mine->several)
            continue;
        if (mine->together < 0)
            mine->together = new_stream(job, index, 0);
        if (mine->together < 0)
            return -1;
        if (add_read(job, &job->streams.items[mine->together], i, mine->ordinal, written, writing, 1) != 0)
            return -1;
    }
    return 0;
}

static int end_reads(job *job, Py_ssize_t from, int together)
{
    for (Py_ssize_t i = from; i < job->streams.count; i++)
        if (end_read(job, &job->streams.items[i], together) != 0)
            return -1;
    return 0;
}

#define DIFFERENT(member) \
    if (a->member != b->member) \
        return a->member < b->member ? -1 : 1;

static int compared_runs(const void *one, const void *other)
{
    const strided_run *const a = one, *const b = other;
    DIFFERENT(layer)
    DIFFERENT(file)
    DIFFERENT(begin)
    DIFFERENT(lane)
    DIFFERENT(number)
    return 0;
}

/* Choose the runs of all threads of a file together if they contain as many reads as those of single threads. */
static void choose_runs(job *job)
{
    strided_run *const runs = job->runs.items;
    for (Py_ssize_t i = 0; i < job->runs.count; i++)
        job->groups.items[runs[i].group].reads[runs[i].together] += runs[i].reads;
    Py_ssize_t kept = 0;
    for (Py_ssize_t i = 0; i < job->runs.count; i++) {
        const group *const group = &job->groups.items[runs[i].group];
        if (runs[i].together == (group->several && group->reads[1] >= group->reads[0]))
            runs[kept++] = runs[i];
    }
    job->runs.count = kept;
}

static int put_rows(job *job, uint32_t rank)
{
    uint32_t number = 0;
    for (Py_ssize_t k = 0; k < job->runs.count; k++) {
        const strided_run *const run = &job->runs.items[k];
        const int goes_on = k && run->file == run[-1].file && run->layer == run[-1].layer;
        number = goes_on ? number + 1 : 0;
        uint16_t position = (uint16_t)(1 + run->taken);
        for (Py_ssize_t next = run->first; next >= 0; next = job->reads.items[next].next, position++) {
            const one_read *const read = &job->reads.items[next].read;
            const Py_ssize_t index = ADDED(job->rows);
            if (index < 0)
                return -1;
            job->rows.items[index] = (row){.start = read->start,
                                           .end = read->end,
                                           .duration = read->duration,
                                           .bytes = read->bytes,
                                           .stride = run->stride,
                                           .written = read->written,
                                           .writing = read->writing,
                                           .rank = rank,
                                           .file = run->file,
                                           .run = number,
                                           .reads = (uint32_t)run->reads,
                                           .ordinal = read->ordinal,
                                           .calls = read->calls,
                                           .call = read->call,
                                           .position = position,
                                           .layer = run->layer,
                                           .interleaved = 2 * run->mixed >= (run->late > 1 ? run->late : 1)};
        }
    }
    return 0;
}

static int do_rank(job *job, Py_ssize_t low, Py_ssize_t high)
{
    job->groups.count = job->streams.count = job->runs.count = job->reads.count = 0;
    job->used = 0;
    job->epoch++;
    if (look_at_rank(job, low, high) != 0 || end_reads(job, 0, 0) != 0)
        return -1;
    int several = 0;
    for (Py_ssize_t i = 0; i < job->groups.count; i++)
        several |= job->groups.items[i].several;
    const Py_ssize_t apart = job->streams.count;
    if (several && (look_at_threads_together(job, low, high) != 0 || end_reads(job, apart, 1) != 0))
        return -1;
    for (Py_ssize_t i = 0; i < job->groups.count; i++) {
        const Py_ssize_t index = ADDED(job->bytes);
        if (index < 0)
            return -1;
        const group *const group = &job->groups.items[i];
        job->bytes.items[index] = (file_bytes){.bytes = group->bytes, .file = group->file, .layer = group->layer};
    }
    if (!job->runs.count)
        return 0;
    choose_runs(job);
    qsort(job->runs.items, (size_t)job->runs.count, sizeof *job->runs.items, compared_runs);
    return put_rows(job, job->rank[low]);
}

static int do_all(job *job)
{
    for (Py_ssize_t low = 0, high; low < job->events; low = high) {
        high = low + 1;
        while (high < job->events && job->rank[high] == job->rank[low])
            high++;
        if (do_rank(job, low, high) != 0)
            return -1;
    }
    return 0;
}

/* Return the first event of an unknown call, or the first invalid position in the order; -1: all are valid. */
static Py_ssize_t misfit_of(const job *job)
{
    for (Py_ssize_t i = 0; i < job->events; i++)
        if (job->call[i] >= job->calls || (job->order && (uint64_t)job->order[i] >= (uint64_t)job->events))
            return i;
    return -1;
}

static int get_arrays(Py_buffer *views, int *held, PyObject *args)
{
    for (int i = 0; i < ARRAYS; i++) {
        PyObject *const object = PyTuple_GetItem(args, i);
        if (i == ORDER && object == Py_None)
            continue;
        if (PyObject_GetBuffer(object, &views[i], PyBUF_C_CONTIGUOUS | (i == SUMS ? PyBUF_WRITABLE : 0)) != 0)
            return -1;
        held[i] = 1;
        if (views[i].itemsize != itemsizes[i]) {
            PyErr_Format(PyExc_TypeError, "%s must have items of %zd bytes", names[i], itemsizes[i]);
            return -1;
        }
        const Py_ssize_t length = views[i].len / views[i].itemsize;
        const Py_ssize_t wanted = i < COLUMNS || i == ORDER ? views[0].len / 4
                                  : i == LAYER              ? views[KIND].len
                                  : i == SUMS               ? SUM_COUNT
                                                            : length;
        if (length != wanted) {
            PyErr_Format(PyExc_ValueError, "%s must have %zd items", names[i], wanted);
            return -1;
        }
    }
    return 0;
}

/* `items` is NULL if there are none. */
static PyObject *bytes_of(const void *items, Py_ssize_t bytes)
{
    return PyBytes_FromStringAndSize(bytes ? items : "", bytes);
}

static PyObject *strided_reads(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *arrays, *result = NULL;
    Py_ssize_t row_bytes;
    job job = {0};
    Py_buffer views[ARRAYS];
    int held[ARRAYS] = {0};
    if (!PyArg_ParseTuple(args, "O!nndn", &PyTuple_Type, &arrays, &job.least_reads, &job.most_positions,
                          &job.written_share, &row_bytes))
        return NULL;
    if (PyTuple_Size(arrays) != ARRAYS || row_bytes != (Py_ssize_t)sizeof(row) || job.least_reads < 3 ||
        job.least_reads > MOST_HELD || job.most_positions < job.least_reads || job.most_positions > UINT16_MAX - 3) {
        PyErr_SetString(PyExc_ValueError, "the arrays, the rows or the numbers are not those that this was made for");
        return NULL;
    }
    if (get_arrays(views, held, arrays) != 0)
        goto done;
    job.rank = views[RANK].buf, job.thread = views[THREAD].buf, job.call = views[CALL].buf,
    job.depth = views[DEPTH].buf;
    job.carried = views[CARRIED].buf, job.file = views[FILE_NUMBER].buf, job.offset = views[OFFSET].buf;
    job.moved = views[MOVED].buf, job.start = views[START].buf, job.duration = views[DURATION].buf;
    job.kind = views[KIND].buf, job.layer = views[LAYER].buf, job.sums = views[SUMS].buf;
    job.order = held[ORDER] ? views[ORDER].buf : NULL;
    job.events = views[RANK].len / 4, job.calls = views[KIND].len;
    const Py_ssize_t misfit = misfit_of(&job);
    if (misfit >= 0) {
        PyErr_Format(PyExc_IndexError, "the call of event %zd is out of range, or the event is out of order", misfit);
        goto done;
    }
    int status;
    Py_BEGIN_ALLOW_THREADS
    status = do_all(&job);
    Py_END_ALLOW_THREADS
    if (status != 0)
        PyErr_NoMemory();
    else
        result = Py_BuildValue("NN", bytes_of(job.rows.items, job.rows.count * (Py_ssize_t)sizeof(row)),
                               bytes_of(job.bytes.items, job.bytes.count * (Py_ssize_t)sizeof(file_bytes)));
    free(job.groups.items);
    free(job.streams.items);
    free(job.runs.items);
    free(job.reads.items);
    free(job.places);
    free(job.rows.items);
    free(job.bytes.items);
done:
    for (int i = 0; i < ARRAYS; i++)
        if (held[i])
            PyBuffer_Release(&views[i]);
    return result;
}

PyMethodDef stride_functions[] = {{"strided_reads", strided_reads, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};
