/* sums.c: windows of events that are read from a file, and sums over chunks: arbitrary events and numbers. The first
 * byte selects one. What columns.c covers is not repeated here. */
#include "input.h"
#include "python.h"

#include <ensio/bins.h>
#include <ensio/event.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define LARGEST_TICKS (1LL << 55)
#define MOST_MOVED (1LL << 50)
#define MOST_CALLS 8
#define MOST_EVENTS 256
#define COLUMNS 13

#define HOLDS(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
            abort(); \
        } \
    } while (0)

static PyObject *call(const char *name, PyObject **kept, PyObject *arguments)
{
    if (!*kept)
        *kept = fuzz_function(PyInit__compiled, name);
    return fuzz_call(*kept, arguments);
}

static PyObject *tuple_of(struct fuzz_buffer *buffers, int count)
{
    PyObject *tuple = PyTuple_New(count);
    for (int i = 0; i < count; i++)
        PyTuple_SetItem(tuple, i, Py_NewRef(buffers[i].view));
    return tuple;
}

static void release_all(struct fuzz_buffer *buffers, int count)
{
    for (int i = 0; i < count; i++)
        fuzz_release(&buffers[i]);
}

static const char *const formats[COLUMNS] = {"I", "H", "H", "B", "B", "I", "q", "Q", "q", "H", "q", "q", "H"};
static const size_t widths[COLUMNS] = {4, 2, 2, 1, 1, 4, 8, 8, 8, 2, 8, 8, 2};

static void make_columns(struct fuzz_buffer *columns, size_t count)
{
    for (int i = 0; i < COLUMNS; i++)
        columns[i] = fuzz_buffer_of(NULL, count * widths[i], formats[i]);
}

/* A window of a spool in a file that holds the rest of the input: reading it agrees with `decode` on the completed
 * events. */
static void window(struct input *input)
{
    static PyObject *reads, *decodes;
    const size_t from = take_byte(input), buffered = take_byte(input) % 16, columns_room = take_byte(input) % 64;
    const size_t position = take_byte(input) % 32, room = take_byte(input) % 64,
                 slots = take_number(input) % (1ULL << 40);
    const int64_t most_ticks = (int64_t)(take_number(input) % (LARGEST_TICKS + 1));
    const uint64_t first_ticks = take_number(input);
    const size_t summed = take_byte(input), before = take_byte(input);
    const size_t bytes = (size_t)(input->end - input->at);
    int file = memfd_create("window", MFD_CLOEXEC);
    HOLDS(file >= 0 && write(file, input->at, bytes) == (ssize_t)bytes);
    struct fuzz_buffer numbers[4] = {fuzz_buffer_of(NULL, buffered * sizeof(struct ensio_event), "B"),
                                     fuzz_buffer_of((const uint16_t[]){0, 1, 2, 3}, 8, "H"),
                                     fuzz_buffer_of((const uint32_t[]){0, 1, 2}, 12, "I"),
                                     fuzz_buffer_of((const uint16_t[]){0, 1, 2}, 6, "H")};
    struct fuzz_buffer columns[COLUMNS], expected[COLUMNS];
    make_columns(columns, columns_room);
    PyObject *told = Py_BuildValue("(KdLLLIIi)", (unsigned long long)first_ticks, 0.7, 1LL << 60, (long long)most_ticks,
                                   MOST_MOVED, 7U, 3U, (int)(first_ticks & 1));
    PyObject *result =
        call("read_window", &reads,
             Py_BuildValue("iL(nnn)nnOOOONO", file, (long long)from, (Py_ssize_t)slots, (Py_ssize_t)summed,
                           (Py_ssize_t)before, (Py_ssize_t)position, (Py_ssize_t)room, numbers[0].view, numbers[1].view,
                           numbers[2].view, numbers[3].view, tuple_of(columns, COLUMNS), told));
    Py_ssize_t read = 0, events = 0, left = 0, open = 0, lost = 0, unknown_calls, unknown_files;
    if (result) {
        HOLDS(PyArg_ParseTuple(result, "nnnnnnn", &read, &events, &left, &open, &lost, &unknown_calls, &unknown_files));
        HOLDS(open >= 0 && lost >= 0 && (size_t)(open + lost) <= before + (size_t)read - (size_t)(events + left));
        HOLDS(events >= 0 && left >= 0 && (size_t)events <= room && (size_t)left <= buffered && (size_t)read <= slots);
        HOLDS(events + left <= read && from + (size_t)read * sizeof(struct ensio_event) <= (read ? bytes : from));
        struct ensio_event *whole = calloc((size_t)read + 1, sizeof *whole);
        Py_ssize_t completed = 0;
        for (Py_ssize_t i = 0; i < read; i++) {
            memcpy(&whole[completed], input->at + from + (size_t)i * sizeof *whole, sizeof *whole);
            completed += whole[completed].call != 0;
        }
        HOLDS(completed == events + left);
        struct fuzz_buffer raw = fuzz_buffer_of(whole, (size_t)events * sizeof *whole, "B");
        make_columns(expected, (size_t)events);
        PyObject *again = call("decode_events", &decodes,
                               Py_BuildValue("OOOONO", raw.view, numbers[1].view, numbers[2].view, numbers[3].view,
                                             tuple_of(expected, COLUMNS), told));
        HOLDS(again && again != Py_None);
        for (int i = 0; i < COLUMNS; i++) {
            HOLDS(memcmp(columns[i].memory + position * widths[i], expected[i].memory, (size_t)events * widths[i]) ==
                  0);
            /* nothing is written for events that were not requested */
            for (size_t k = 0; k < columns_room * widths[i]; k++)
                HOLDS((k >= position * widths[i] && k < (position + room) * widths[i]) || !columns[i].memory[k]);
        }
        Py_DECREF(again);
        fuzz_release(&raw);
        release_all(expected, COLUMNS);
        free(whole);
        Py_DECREF(result);
    }
    Py_DECREF(told);
    release_all(columns, COLUMNS);
    release_all(numbers, 4);
    close(file);
}

/* Columns of arbitrary calls, including numbers that no call has. */
struct chunk {
    size_t count;
    uint16_t call[MOST_EVENTS];
    uint32_t rank[MOST_EVENTS];
    uint64_t requested[MOST_EVENTS];
    int64_t start[MOST_EVENTS], duration[MOST_EVENTS], moved[MOST_EVENTS];
    uint8_t depth[MOST_EVENTS], carried[MOST_EVENTS];
};

static struct chunk *some_chunk(struct input *input, size_t calls)
{
    static struct chunk chunk;
    for (chunk.count = 0; chunk.count < MOST_EVENTS && input->at < input->end; chunk.count++) {
        size_t i = chunk.count;
        chunk.call[i] = (uint16_t)(take_byte(input) % (calls + 1 + (calls == 0)));
        chunk.call[i] = chunk.call[i] == calls && take_byte(input) ? 0 : chunk.call[i];
        chunk.rank[i] = (uint32_t)take_number(input);
        chunk.requested[i] = take_number(input);
        chunk.start[i] = (int64_t)(take_number(input) % (1ULL << 62));
        chunk.duration[i] = (int64_t)(take_number(input) % (1ULL << 53)); /* sums stay below 64 bits */
        chunk.moved[i] = (int64_t)(take_number(input) % (MOST_MOVED + 1)) - 1;
        chunk.depth[i] = take_byte(input) % 3;
        chunk.carried[i] = take_byte(input) % 4;
    }
    return &chunk;
}

static void sum_calls(struct input *input)
{
    static PyObject *sums_calls, *sums_powers;
    const size_t calls = take_byte(input) % (MOST_CALLS + 1);
    uint8_t bits[MOST_CALLS];
    double mean[MOST_CALLS];
    for (size_t i = 0; i < calls; i++)
        bits[i] = take_byte(input) % 3, mean[i] = (double)(take_number(input) % (1ULL << 53));
    struct chunk *chunk = some_chunk(input, calls);
    const size_t n = chunk->count;
    struct fuzz_buffer arrays[9] = {fuzz_buffer_of(chunk->call, 2 * n, "H"),
                                    fuzz_buffer_of(chunk->start, 8 * n, "q"),
                                    fuzz_buffer_of(chunk->duration, 8 * n, "q"),
                                    fuzz_buffer_of(chunk->moved, 8 * n, "q"),
                                    fuzz_buffer_of(chunk->depth, n, "B"),
                                    fuzz_buffer_of(chunk->carried, n, "B"),
                                    fuzz_buffer_of(bits, calls, "B"),
                                    fuzz_buffer_of(NULL, 8 * 7 * calls, "q"),
                                    fuzz_buffer_of(NULL, 24, "q")};
    PyObject *result = call("sum_calls", &sums_calls, tuple_of(arrays, 9));
    int64_t known = 0, found[3] = {0}, wanted[3] = {0};
    for (size_t i = 0; i < n; i++) {
        known += chunk->call[i] < calls;
        wanted[0]++, wanted[1] += chunk->moved[i] < 0, wanted[2] += chunk->duration[i];
    }
    for (size_t i = 0; i < calls; i++) {
        const int64_t *row = (int64_t *)arrays[7].memory + 7 * i;
        found[0] += row[0], found[1] += row[1], found[2] += row[4];
    }
    HOLDS(!result == (known < (int64_t)n));
    HOLDS(!result || memcmp(found, wanted, sizeof found) == 0);
    Py_XDECREF(result);
    struct fuzz_buffer powers[4] = {arrays[0], arrays[2], fuzz_buffer_of(mean, 8 * calls, "d"),
                                    fuzz_buffer_of(NULL, 24 * calls, "d")};
    result = call("sum_powers", &sums_powers, tuple_of(powers, 4));
    HOLDS(!result == (known < (int64_t)n));
    for (size_t i = 0; i < calls; i++) {
        double power[3];
        memcpy(power, powers[3].memory + i * sizeof power, sizeof power);
        HOLDS(power[0] >= 0 && power[2] >= 0);
    }
    Py_XDECREF(result);
    release_all(powers + 2, 2);
    release_all(arrays, 9);
}

/* Rows of equal keys are joined once each, sums are kept, and each taken row knows its place. */
static void sum_by_keys(struct input *input)
{
    static PyObject *sums;
    enum { KEYS = 2, VALUES = 3, NUMBERS = KEYS + 1 + VALUES, COUNT = KEYS, SUM, LEAST, MOST };
    const uint8_t given = take_byte(input);
    struct chunk *chunk = some_chunk(input, MOST_CALLS);
    const size_t n = chunk->count;
    int64_t taken = 0, moved = 0;
    for (size_t i = 0; i < n; i++) {
        chunk->depth[i] = !(given & 1) || chunk->depth[i];
        taken += chunk->depth[i], moved += chunk->depth[i] ? chunk->moved[i] : 0;
    }
    struct fuzz_buffer arrays[7] = {fuzz_buffer_of(chunk->call, 2 * n, "H"),
                                    given & 2 ? fuzz_buffer_of(chunk->rank, 4 * n, "I")
                                              : fuzz_buffer_of(chunk->requested, 8 * n, "q"),
                                    fuzz_buffer_of(chunk->moved, 8 * n, "q"),
                                    fuzz_buffer_of(chunk->start, 8 * n, "q"),
                                    fuzz_buffer_of(chunk->duration, 8 * n, "q"),
                                    fuzz_buffer_of(chunk->depth, n, "B"),
                                    fuzz_buffer_of(NULL, 4 * n, "i")};
    PyObject *result = call("sum_by_keys", &sums,
                            Py_BuildValue("NNsOO", tuple_of(arrays, KEYS), tuple_of(arrays + KEYS, VALUES), "slm",
                                          given & 1 ? arrays[5].view : Py_None, arrays[6].view));
    HOLDS(result);
    const size_t rows = (size_t)PyBytes_Size(result) / 8 / NUMBERS;
    int64_t row[MOST_EVENTS][NUMBERS] = {0};
    for (size_t i = 0; i < rows; i++) {
        for (size_t column = 0; column < NUMBERS; column++)
            memcpy(&row[i][column], PyBytes_AsString(result) + 8 * (column * rows + i), sizeof row[i][column]);
        taken -= row[i][COUNT], moved -= row[i][SUM];
    }
    HOLDS(!taken && !moved);
    for (size_t i = 0; i < n; i++) {
        const int32_t place = ((int32_t *)arrays[6].memory)[i];
        HOLDS(chunk->depth[i] ? place >= 0 && (size_t)place < rows : place == -1);
        HOLDS(place < 0 || (row[place][0] == chunk->call[i] && row[place][LEAST] <= chunk->start[i] &&
                            row[place][MOST] >= chunk->duration[i]));
    }
    Py_DECREF(result);
    release_all(arrays, 7);
}

static void spread_calls(struct input *input)
{
    static PyObject *spreads, *bounds;
    const size_t calls = take_byte(input) % (MOST_CALLS + 1), rows = take_byte(input) % 4,
                 cells = 1 + take_byte(input) % 64;
    const int level = take_byte(input) % 64, shift = take_byte(input) % 64;
    const uint8_t given = take_byte(input);
    const long long in_row = (long long)take_number(input);
    const int64_t first = (int64_t)(take_number(input) % (1ULL << 62)) >> (level % 63);
    int32_t row_of[MOST_CALLS];
    uint8_t bits[MOST_CALLS];
    for (size_t i = 0; i < calls; i++)
        row_of[i] = (int32_t)take_byte(input) % 6 - 1, bits[i] = take_byte(input) % 3;
    struct chunk *chunk = some_chunk(input, calls);
    const size_t n = chunk->count;
    struct fuzz_buffer arrays[12] = {fuzz_buffer_of(chunk->start, 8 * n, "q"),
                                     fuzz_buffer_of(chunk->duration, 8 * n, "q"),
                                     fuzz_buffer_of(chunk->call, 2 * n, "H"),
                                     fuzz_buffer_of(row_of, 4 * calls, "i"),
                                     fuzz_buffer_of(chunk->rank, 4 * n, "I"),
                                     fuzz_buffer_of(chunk->depth, n, "B"),
                                     fuzz_buffer_of(chunk->moved, 8 * n, "q"),
                                     fuzz_buffer_of(chunk->carried, n, "B"),
                                     fuzz_buffer_of(bits, calls, "B"),
                                     fuzz_buffer_of(NULL, 8 * rows * cells, "q"),
                                     fuzz_buffer_of(NULL, 8 * rows * cells, "q"),
                                     fuzz_buffer_of(chunk->requested, 8 * n, "q")};
    PyObject *views[12];
    for (int i = 0; i < 12; i++)
        views[i] = arrays[i].view;
    if (given & 1)
        views[4] = Py_None;
    if (given & 2)
        views[5] = Py_None;
    if (given & 4)
        views[6] = views[7] = views[8] = Py_None;
    if (given & 8)
        views[9] = Py_None;
    if (given & 16)
        views[10] = Py_None;
    if (given & 32)
        views[11] = Py_None;
    PyObject *result = call("spread_calls", &spreads,
                            Py_BuildValue("OOOOOOLOOOOiiLOLO", views[0], views[1], views[11], views[2], views[3],
                                          views[4], in_row, views[5], views[6], views[7], views[8], shift, level,
                                          (long long)first, views[9], (long long)cells, views[10]));
    Py_XDECREF(result);
    result = call("time_bounds", &bounds, Py_BuildValue("OOO", views[0], views[1], views[11]));
    HOLDS(result);
    Py_XDECREF(result);
    release_all(arrays, 12);
}

static void count_seconds(struct input *input)
{
    static PyObject *counts;
    double limit, seconds[MOST_EVENTS];
    uint64_t word = take_word(input);
    memcpy(&limit, &word, sizeof limit);
    size_t n = 0;
    for (; n < MOST_EVENTS && input->at < input->end; n++) {
        word = take_word(input);
        memcpy(&seconds[n], &word, sizeof word);
    }
    struct fuzz_buffer arrays[3] = {fuzz_buffer_of(seconds, 8 * n, "d"), fuzz_buffer_of(NULL, 8 * ENSIO_BIN_COUNT, "q"),
                                    fuzz_buffer_of(NULL, 40, "d")};
    PyObject *result =
        call("count_seconds", &counts, Py_BuildValue("OdOO", arrays[0].view, limit, arrays[1].view, arrays[2].view));
    if (result && PyLong_AsLong(result) < 0) {
        int64_t all = 0;
        for (size_t i = 0; i < ENSIO_BIN_COUNT; i++)
            all += ((int64_t *)arrays[1].memory)[i];
        HOLDS(all == (int64_t)n);
    }
    Py_XDECREF(result);
    release_all(arrays, 3);
}

/* Calls are numbered if they are in order, each with one more than the call before it of the same rank and group. */
static void number_calls(struct input *input)
{
    static PyObject *numbers;
    struct chunk *chunk = some_chunk(input, MOST_CALLS);
    const size_t n = chunk->count;
    struct fuzz_buffer arrays[5] = {fuzz_buffer_of(chunk->rank, 4 * n, "I"), fuzz_buffer_of(chunk->start, 8 * n, "q"),
                                    fuzz_buffer_of(chunk->depth, n, "B"), fuzz_buffer_of(chunk->requested, 8 * n, "Q"),
                                    fuzz_buffer_of(NULL, 8 * n, "q")};
    PyObject *result = call("number_calls", &numbers, tuple_of(arrays, 5));
    HOLDS(result);
    for (size_t i = 0; result == Py_True && i < n; i++) {
        int64_t before = 1, found;
        for (size_t k = 0; k < i; k++)
            before += chunk->rank[k] == chunk->rank[i] && chunk->requested[k] == chunk->requested[i];
        memcpy(&found, arrays[4].memory + 8 * i, sizeof found);
        HOLDS(found == before);
    }
    Py_DECREF(result);
    release_all(arrays, 5);
}

/* Uses move the bytes of the calls that count. */
static void join_uses(struct input *input)
{
    static PyObject *joins;
    enum { NUMBERS = 9 };
    const size_t calls = take_byte(input) % (MOST_CALLS + 1);
    uint8_t bits[MOST_CALLS];
    int8_t direction[MOST_CALLS] = {0}, edge[MOST_CALLS];
    for (size_t i = 0; i < calls; i++) {
        bits[i] = take_byte(input) % 4, edge[i] = (int8_t)(take_byte(input) % 5);
        direction[i] = (int8_t)(take_byte(input) % 3 - 1);
    }
    struct chunk *chunk = some_chunk(input, calls);
    const size_t n = chunk->count;
    uint16_t thread[MOST_EVENTS];
    uint32_t file[MOST_EVENTS];
    uint64_t bytes = 0;
    size_t known = 0;
    for (size_t i = 0; i < n; i++) {
        thread[i] = chunk->requested[i] % 2, file[i] = chunk->requested[i] % 3;
        known += chunk->call[i] < calls;
    }
    for (size_t i = 0; known == n && i < n; i++) {
        const size_t c = chunk->call[i];
        if (chunk->moved[i] > 0 && direction[c] >= 0 && !(chunk->carried[i] & bits[c]))
            bytes += (uint64_t)chunk->moved[i];
    }
    struct fuzz_buffer arrays[12] = {fuzz_buffer_of(chunk->rank, 4 * n, "I"),
                                     fuzz_buffer_of(thread, 2 * n, "H"),
                                     fuzz_buffer_of(file, 4 * n, "I"),
                                     fuzz_buffer_of(chunk->call, 2 * n, "H"),
                                     fuzz_buffer_of(chunk->carried, n, "B"),
                                     fuzz_buffer_of(chunk->depth, n, "B"),
                                     fuzz_buffer_of(chunk->moved, 8 * n, "q"),
                                     fuzz_buffer_of(chunk->start, 8 * n, "q"),
                                     fuzz_buffer_of(chunk->duration, 8 * n, "q"),
                                     fuzz_buffer_of(bits, calls, "B"),
                                     fuzz_buffer_of(direction, calls, "b"),
                                     fuzz_buffer_of(edge, calls, "b")};
    PyObject *result = call("join_uses", &joins, tuple_of(arrays, 12));
    HOLDS(!result == (known < n));
    if (result) {
        const size_t rows = (size_t)PyBytes_Size(result) / 8 / NUMBERS;
        int64_t one;
        for (size_t i = 0; i < 2 * rows; i++) {
            memcpy(&one, PyBytes_AsString(result) + 8 * (5 * rows + i), sizeof one);
            bytes -= (uint64_t)one;
        }
        HOLDS(!bytes);
        Py_DECREF(result);
    }
    release_all(arrays, 12);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const all[])(struct input *) = {window,        sum_calls,    sum_by_keys, spread_calls,
                                                  count_seconds, number_calls, join_uses};
    struct input input = {data, data + size};
    all[take_byte(&input) % (sizeof all / sizeof *all)](&input);
    return 0;
}
