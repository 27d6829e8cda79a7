/* Detection of strides in the read streams of a task. ensembles/structure/strides.py defines the terms.
 * Only _strides.c, which iterates over the calls, includes this file. */
#ifndef ENSIO_STREAMS_H
#define ENSIO_STREAMS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_HELD = 16, LATE = 3 };

/* ROW of strides/detect.py. */
typedef struct {
    int64_t start, end, duration, bytes, stride, written, writing;
    uint32_t rank, file, run, reads, ordinal, calls;
    uint16_t call, position;
    uint8_t layer, interleaved;
} row;

/* BYTES of strides/detect.py. */
typedef struct {
    int64_t bytes;
    uint32_t file, layer;
} file_bytes;

/* Contiguous reads of a stream. `written` counts since the previous read. */
typedef struct {
    int64_t start, end, duration, offset, bytes, written, writing;
    uint32_t ordinal, calls;
    uint16_t call;
} one_read;

/* The reads of a file by a task through a layer. */
typedef struct {
    int64_t bytes, reads[2]; /* number in strided runs of single threads, and of all threads together */
    Py_ssize_t together;     /* the stream of all threads, or -1 */
    uint32_t file, ordinal;
    uint16_t lane;
    uint8_t layer, several; /* threads */
} group;

typedef struct {
    one_read now, held[MOST_HELD]; /* held: candidates for a run */
    one_read before;
    int64_t stride, written, writing; /* written: at the beginning of `now` */
    Py_ssize_t group, run, length;    /* run: -1 until the stride has enough reads; length: reads with this stride */
    int holding, begun, taken;        /* begun: `before` is set; taken: `before` is the last read of the previous run */
    uint16_t lane;
} stream;

typedef struct {
    int64_t begin, stride;
    Py_ssize_t group, number, first, last, reads, late, mixed; /* late: from the fourth on; mixed: after writes */
    uint32_t file;
    uint16_t lane;
    uint8_t layer, taken, together;
} strided_run;

typedef struct {
    one_read read;
    Py_ssize_t next;
} listed_read;

typedef struct {
    uint64_t key;
    Py_ssize_t index, epoch; /* an entry of another epoch is free */
} place;

/* A growing array. */
#define LIST(type) \
    struct { \
        type *items; \
        Py_ssize_t count, room; \
    }

typedef struct {
    const uint32_t *rank, *file;
    const uint16_t *thread, *call;
    const uint8_t *depth, *carried, *kind, *layer;
    const int64_t *offset, *moved, *start, *duration, *order;
    int64_t *sums;
    Py_ssize_t events, calls, least_reads, most_positions;
    double written_share;
    /* State of the current rank: */
    LIST(group) groups;
    LIST(stream) streams;
    LIST(strided_run) runs;
    LIST(listed_read) reads;
    place *places;
    Py_ssize_t room, used, epoch;
    /* Results of all ranks: */
    LIST(row) rows;
    LIST(file_bytes) bytes;
} job;

/* Append an undefined item; return its index, or -1 without memory. */
static Py_ssize_t one_more(void **items, Py_ssize_t *count, Py_ssize_t *room, size_t size)
{
    if (*count == *room) {
        const Py_ssize_t wanted = *room ? 2 * *room : 64;
        void *const more = realloc(*items, (size_t)wanted * size);
        if (!more)
            return -1;
        *items = more, *room = wanted;
    }
    return (*count)++;
}

#define ADDED(list) one_more((void **)&(list).items, &(list).count, &(list).room, sizeof *(list).items)

static place *place_of(place *places, Py_ssize_t room, Py_ssize_t epoch, uint64_t key)
{
    uint64_t hash = key * 0x9e3779b97f4a7c15ULL;
    hash ^= hash >> 32;
    Py_ssize_t at = (Py_ssize_t)(hash & (uint64_t)(room - 1));
    while (places[at].epoch == epoch && places[at].key != key)
        at = (at + 1) & (room - 1);
    return &places[at];
}

/* Find the entry of a key; a new entry is free (index -1). NULL: no memory. */
static place *found_place(job *job, uint64_t key)
{
    if (2 * job->used >= job->room) {
        const Py_ssize_t room = job->room ? 2 * job->room : 256;
        place *const places = calloc((size_t)room, sizeof *places);
        if (!places)
            return NULL;
        for (Py_ssize_t i = 0; i < job->room; i++)
            if (job->places[i].epoch == job->epoch)
                *place_of(places, room, job->epoch, job->places[i].key) = job->places[i];
        free(job->places);
        job->places = places, job->room = room;
    }
    place *const found = place_of(job->places, job->room, job->epoch, key);
    if (found->epoch != job->epoch) {
        *found = (place){.key = key, .index = -1, .epoch = job->epoch};
        job->used++;
    }
    return found;
}

static Py_ssize_t group_of(job *job, uint32_t file, uint8_t layer)
{
    place *const found = found_place(job, (uint64_t)1 << 63 | (uint64_t)file << 8 | layer);
    if (!found)
        return -1;
    if (found->index < 0) {
        const Py_ssize_t index = ADDED(job->groups);
        if (index < 0)
            return -1;
        job->groups.items[index] = (group){.file = file, .layer = layer, .together = -1};
        found->index = index;
    }
    return found->index;
}

static Py_ssize_t new_stream(job *job, Py_ssize_t group, uint16_t lane)
{
    const Py_ssize_t index = ADDED(job->streams);
    if (index >= 0) {
        stream *const made = &job->streams.items[index];
        memset(made, 0, sizeof *made);
        made->group = group, made->run = -1, made->lane = lane;
    }
    return index;
}

static Py_ssize_t stream_of(job *job, Py_ssize_t group, uint16_t lane)
{
    place *const found = found_place(job, (uint64_t)group << 16 | lane);
    if (found && found->index < 0)
        found->index = new_stream(job, group, lane);
    return found ? found->index : -1;
}

static inline void add_up(int64_t *sum, int64_t more)
{
    *sum = (int64_t)((uint64_t)*sum + (uint64_t)more);
}

/* Add a read to the run of its stream. */
static int put_read(job *job, const stream *mine, const one_read *read)
{
    strided_run *const run = &job->runs.items[mine->run];
    const Py_ssize_t position = run->reads++;
    if (position >= LATE) {
        run->late++;
        run->mixed += (double)read->written >= job->written_share * (double)read->bytes;
    }
    if (position > job->most_positions) {
        one_read *const sum = &job->reads.items[run->last].read;
        sum->end = read->end > sum->end ? read->end : sum->end;
        add_up(&sum->duration, read->duration);
        add_up(&sum->bytes, read->bytes);
        add_up(&sum->written, read->written);
        add_up(&sum->writing, read->writing);
        sum->calls += read->calls;
        return 0;
    }
    const Py_ssize_t index = ADDED(job->reads);
    if (index < 0)
        return -1;
    job->reads.items[index] = (listed_read){*read, -1};
    if (run->first < 0)
        run->first = index;
    else
        job->reads.items[run->last].next = index;
    run->last = index;
    return 0;
}

/* Begin a run with the held reads, because the stride has enough reads. */
static int begin_run(job *job, stream *mine, int together)
{
    mine->run = ADDED(job->runs);
    if (mine->run < 0)
        return -1;
    const group *const group = &job->groups.items[mine->group];
    job->runs.items[mine->run] = (strided_run){.begin = mine->held[0].start,
                                               .stride = mine->stride,
                                               .file = group->file,
                                               .layer = group->layer,
                                               .group = mine->group,
                                               .number = mine->run,
                                               .first = -1,
                                               .lane = mine->lane,
                                               .taken = (uint8_t)mine->taken,
                                               .together = (uint8_t)together};
    for (int i = 0; i < mine->holding; i++)
        if (put_read(job, mine, &mine->held[i]) != 0)
            return -1;
    return 0;
}

/* Finish the current read of a stream, and compare its stride. */
static int end_read(job *job, stream *mine, int together)
{
    const one_read *const now = &mine->now, *const before = &mine->before;
    const int64_t step = (int64_t)((uint64_t)now->offset - (uint64_t)before->offset);
    const int64_t stride = mine->begun && step > before->bytes ? step : 0;
    int status = 0;
    if (!mine->begun || stride != mine->stride) {
        mine->taken = mine->run >= 0;
        mine->run = -1, mine->stride = stride, mine->length = 0, mine->holding = 0;
        if (stride && !mine->taken)
            mine->held[mine->holding++] = *before;
    }
    mine->length++;
    if (stride && mine->run >= 0) {
        status = put_read(job, mine, now);
    } else if (stride) {
        mine->held[mine->holding++] = *now;
        if (mine->length >= job->least_reads - 1)
            status = begin_run(job, mine, together);
    }
    mine->before = *now, mine->begun = 1;
    return status;
}

/* Continue a stream with a call. */
static int add_read(job *job, stream *mine, Py_ssize_t i, uint32_t ordinal, int64_t written, int64_t writing,
                    int together)
{
    one_read *const now = &mine->now;
    const int64_t offset = job->offset[i], moved = job->moved[i], duration = job->duration[i];
    const int64_t end = (int64_t)((uint64_t)job->start[i] + (uint64_t)duration);
    if (now->calls && offset == (int64_t)((uint64_t)now->offset + (uint64_t)now->bytes)) {
        add_up(&now->bytes, moved);
        add_up(&now->duration, duration);
        now->end = end > now->end ? end : now->end;
        now->calls++;
        return 0;
    }
    const int first = !now->calls;
    if (!first && end_read(job, mine, together) != 0)
        return -1;
    *now = (one_read){.start = job->start[i],
                      .end = end,
                      .duration = duration,
                      .offset = offset,
                      .bytes = moved,
                      .written = first ? 0 : (int64_t)((uint64_t)written - (uint64_t)mine->written),
                      .writing = first ? 0 : (int64_t)((uint64_t)writing - (uint64_t)mine->writing),
                      .ordinal = ordinal,
                      .calls = 1,
                      .call = job->call[i]};
    mine->written = written, mine->writing = writing;
    return 0;
}

#endif
