/* columns.c: the loops over events and columns, with arbitrary events and numbers. The first byte selects one. Times
 * are in the range that readers accept (columns.py, trace_metadata.py); everything else is arbitrary. */
#include "input.h"
#include "python.h"

#include <ensio/bins.h>
#include <ensio/event.h>
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define LARGEST_TICKS (1LL << 55)
#define LARGEST_NS (1LL << 58)
#define LATEST_NS ((1LL << 62) + (1LL << 58))
#define MOST_MOVED (1LL << 50)
#define MOST_EVENTS 512
#define MOST_CELLS 64

#define HOLDS(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
            abort(); \
        } \
    } while (0)

static PyObject *function(const char *name, PyObject **kept)
{
    if (!*kept)
        *kept = fuzz_function(PyInit__compiled, name);
    return *kept;
}

/* Events from the remaining input, as they lie in a spool, into columns. */
static void spool_columns(struct input *input)
{
    static const char *const formats[13] = {"I", "H", "H", "B", "B", "I", "q", "Q", "q", "H", "q", "q", "H"};
    static const size_t widths[13] = {4, 2, 2, 1, 1, 4, 8, 8, 8, 2, 8, 8, 2};
    static PyObject *decode;
    size_t calls = take_byte(input) % 8, files = take_byte(input) % 8;
    uint16_t wanted = (uint16_t)(take_byte(input) | take_byte(input) << 8);
    uint64_t first_ticks = take_number(input);
    double ns_per_tick = 0.1 + (double)(take_number(input) % 1000) / 7.0; /* clocks from 7 MHz to 10 GHz */
    int64_t begin_ns = (int64_t)(take_number(input) % (1ULL << 62)),
            most_ticks = (int64_t)((double)LARGEST_NS / ns_per_tick);
    most_ticks = most_ticks < LARGEST_TICKS ? most_ticks : LARGEST_TICKS;
    size_t bytes = (size_t)(input->end - input->at), count = bytes / sizeof(struct ensio_event);
    struct fuzz_buffer events = fuzz_buffer_of(input->at, bytes, "B"), column[13];
    struct fuzz_buffer call_numbers = fuzz_buffer_of(NULL, 2 * calls, "H"),
                       file_numbers = fuzz_buffer_of(NULL, 4 * files, "I"),
                       site_numbers = fuzz_buffer_of((const uint16_t[]){0, 1, 2}, 6, "H");
    for (size_t i = 0; i < calls; i++)
        ((uint16_t *)call_numbers.memory)[i] = (uint16_t)(i + 1);
    for (size_t i = 0; i < files; i++)
        ((uint32_t *)file_numbers.memory)[i] = (uint32_t)i;
    PyObject *columns = PyTuple_New(13);
    for (int i = 0; i < 13; i++) {
        column[i] = fuzz_buffer_of(NULL, count * widths[i], formats[i]);
        PyObject *given = wanted >> i & 1 ? Py_None : column[i].view;
        PyTuple_SetItem(columns, i, Py_NewRef(given));
    }
    PyObject *result = fuzz_call(function("decode_events", &decode),
                                 Py_BuildValue("OOOON(KdLLLIIi)", events.view, call_numbers.view, file_numbers.view,
                                               site_numbers.view, columns, first_ticks, ns_per_tick, begin_ns,
                                               most_ticks, MOST_MOVED, 7U, 3U, (int)(first_ticks & 1)));
    const int64_t *start = (int64_t *)column[10].memory, *duration = (int64_t *)column[11].memory;
    for (size_t i = 0; result && result != Py_None && i < count; i++) {
        HOLDS(duration[i] >= 0 && duration[i] <= LARGEST_NS && start[i] <= LATEST_NS && start[i] >= -LARGEST_NS);
        HOLDS(((uint16_t *)column[2].memory)[i] <= calls && ((uint32_t *)column[5].memory)[i] < (files ? files : 1));
        HOLDS(((uint16_t *)column[12].memory)[i] <= 2);
        HOLDS(((int64_t *)column[8].memory)[i] >= -1 && ((int64_t *)column[8].memory)[i] <= MOST_MOVED);
    }
    Py_XDECREF(result);
    fuzz_release(&events);
    fuzz_release(&call_numbers);
    fuzz_release(&file_numbers);
    fuzz_release(&site_numbers);
    for (int i = 0; i < 13; i++)
        fuzz_release(&column[i]);
}

static void compact(struct input *input)
{
    static PyObject *compacts;
    size_t bytes = (size_t)(input->end - input->at);
    struct fuzz_buffer events = fuzz_buffer_of(input->at, bytes, "B");
    PyObject *result = fuzz_call(function("compact_events", &compacts), PyTuple_Pack(1, events.view));
    HOLDS(result && PyLong_AsLong(result) <= (long)(bytes / sizeof(struct ensio_event)));
    Py_XDECREF(result);
    fuzz_release(&events);
}

static void unshuffle(struct input *input)
{
    static PyObject *unshuffles;
    int width = take_byte(input) % 10;
    int64_t first = (int64_t)take_number(input);
    size_t room = take_number(input) % 4096, bytes = (size_t)(input->end - input->at);
    struct fuzz_buffer from = fuzz_buffer_of(input->at, bytes, "B"), out = fuzz_buffer_of(NULL, room, "B");
    PyObject *result = fuzz_call(function("unshuffle", &unshuffles),
                                 Py_BuildValue("OniO", from.view, (Py_ssize_t)first, width, out.view));
    for (size_t i = 0; result && i < room; i++) /* byte k of item i of those from `first` on */
        HOLDS(out.memory[i] ==
              input->at[i % (size_t)width * (bytes / (size_t)width) + (size_t)first + i / (size_t)width]);
    Py_XDECREF(result);
    fuzz_release(&from);
    fuzz_release(&out);
}

/* Columns of arbitrary calls, with times as after reading. */
struct calls {
    size_t count;
    int64_t start[MOST_EVENTS], duration[MOST_EVENTS], amount[MOST_EVENTS];
    int32_t row[MOST_EVENTS];
    uint16_t call[MOST_EVENTS];
    uint8_t depth[MOST_EVENTS];
};

static struct calls *some_calls(struct input *input)
{
    static struct calls calls;
    int64_t now = 0, left = 1LL << 62; /* sums of times stay below 64 bits, as in any real run */
    for (calls.count = 0; calls.count < MOST_EVENTS && input->at < input->end; calls.count++) {
        size_t i = calls.count;
        now = (now + (int64_t)(take_number(input) % (1ULL << 61))) % LATEST_NS;
        calls.start[i] = now - (take_byte(input) % 4 == 0) * LARGEST_NS;
        int64_t most = left < LARGEST_NS ? left : LARGEST_NS;
        calls.duration[i] = (int64_t)(take_number(input) % ((uint64_t)most + 1));
        left -= calls.duration[i];
        calls.amount[i] = (int64_t)(take_number(input) % (MOST_MOVED + 1));
        calls.row[i] = (int32_t)take_number(input);
        calls.call[i] = (uint16_t)take_number(input);
        calls.depth[i] = take_byte(input) % 3 / 2;
    }
    return &calls;
}

static int64_t sum_of(const int64_t *numbers, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (uint64_t)numbers[i];
    return (int64_t)sum;
}

static void spread(struct input *input)
{
    static PyObject *spreads;
    int level = (int)(take_number(input) % 64), timed = take_byte(input) % 2;
    int64_t first = (int64_t)(take_number(input) % LATEST_NS) >> level;
    size_t rows = take_byte(input) % 4, cells = 1 + take_byte(input) % MOST_CELLS;
    struct calls *calls = some_calls(input);
    for (size_t i = 0; i < calls->count; i++)
        calls->row[i] %= 8;
    struct fuzz_buffer start = fuzz_buffer_of(calls->start, 8 * calls->count, "q");
    struct fuzz_buffer duration = fuzz_buffer_of(calls->duration, 8 * calls->count, "q");
    struct fuzz_buffer row = fuzz_buffer_of(calls->row, 4 * calls->count, "i");
    struct fuzz_buffer amount = fuzz_buffer_of(calls->amount, 8 * calls->count, "q");
    struct fuzz_buffer out = fuzz_buffer_of(NULL, 8 * rows * cells, "q");
    PyObject *result =
        fuzz_call(function("spread", &spreads),
                  Py_BuildValue("OOOOiLOL", start.view, duration.view, row.view, timed ? Py_None : amount.view, level,
                                (long long)first, out.view, (long long)cells));
    if (result) {
        uint64_t expected = 0;
        for (size_t i = 0; i < calls->count; i++)
            expected += calls->row[i] < 0 ? 0 : (uint64_t)(timed ? calls->duration[i] : calls->amount[i]);
        HOLDS((uint64_t)sum_of((int64_t *)out.memory, rows * cells) == expected);
    }
    Py_XDECREF(result);
    fuzz_release(&start);
    fuzz_release(&duration);
    fuzz_release(&row);
    fuzz_release(&amount);
    fuzz_release(&out);
}

static void count_bins(struct input *input)
{
    static PyObject *counts;
    size_t groups = take_byte(input) % 4;
    struct calls *calls = some_calls(input);
    struct fuzz_buffer group = fuzz_buffer_of(calls->call, 2 * calls->count, "H");
    struct fuzz_buffer duration = fuzz_buffer_of(calls->duration, 8 * calls->count, "q");
    struct fuzz_buffer out = fuzz_buffer_of(NULL, 8 * groups * ENSIO_BIN_COUNT, "q");
    PyObject *result = fuzz_call(function("count_bins", &counts), PyTuple_Pack(3, group.view, duration.view, out.view));
    HOLDS(!result || sum_of((int64_t *)out.memory, groups * ENSIO_BIN_COUNT) == (int64_t)calls->count);
    Py_XDECREF(result);
    fuzz_release(&group);
    fuzz_release(&duration);
    fuzz_release(&out);
}

static void count_groups(struct input *input)
{
    static PyObject *counts;
    size_t cuts = take_byte(input) % 6, groups = cuts + 1;
    int64_t cut[6];
    for (size_t i = 0; i < cuts; i++)
        cut[i] = (i ? cut[i - 1] : -LARGEST_NS) + (int64_t)(take_number(input) % (1ULL << 60));
    uint8_t optional = take_byte(input);
    struct calls *calls = some_calls(input);
    const size_t bytes[9] = {
        8 * calls->count, 8 * calls->count, calls->count, 8 * cuts,        8 * groups * ENSIO_BIN_COUNT,
        8 * groups,       8 * groups,       16 * groups,  4 * calls->count};
    const void *const data[9] = {calls->start, calls->duration, calls->depth, cut, NULL, NULL, NULL, NULL, NULL};
    static const char *const formats[9] = {"q", "q", "B", "q", "q", "q", "q", "d", "i"};
    struct fuzz_buffer array[9];
    PyObject *arguments = PyTuple_New(9);
    for (int i = 0; i < 9; i++) {
        array[i] = fuzz_buffer_of(data[i], bytes[i], formats[i]);
        int left_out = (i == 2 && optional & 1) || (i == 8 && optional & 2);
        PyTuple_SetItem(arguments, i, Py_NewRef(left_out ? Py_None : array[i].view));
    }
    PyObject *result = fuzz_call(function("count_groups", &counts), arguments);
    int64_t taken = 0;
    for (size_t i = 0; i < calls->count; i++)
        taken += optional & 1 || calls->depth[i];
    HOLDS(result && sum_of((int64_t *)array[4].memory, groups * ENSIO_BIN_COUNT) == taken);
    Py_XDECREF(result);
    for (int i = 0; i < 9; i++)
        fuzz_release(&array[i]);
}

/* Gaps and their cells as the Python code lays them out, and calls that overlap them in any way. */
static void mark_gaps(struct input *input)
{
    enum { GAPS = 4, EVEN = 8 };
    static PyObject *marks;
    size_t gaps = take_byte(input) % GAPS, cells = EVEN;
    int64_t from[GAPS], to[GAPS], width[GAPS], even[GAPS], end = -LARGEST_NS;
    for (size_t i = 0; i < gaps; i++) {
        from[i] = end + (int64_t)(take_number(input) % (1ULL << 59));
        to[i] = end = from[i] + 1 + (int64_t)(take_number(input) % (1ULL << 58));
        width[i] = (to[i] - from[i] + EVEN - 1) / EVEN;
        even[i] = (to[i] - from[i]) / width[i] / 2;
        int64_t fine = to[i] - 1 - (from[i] + even[i] * width[i]);
        size_t needed = (size_t)even[i] + ensio_bin((uint64_t)fine) + 1;
        cells = needed > cells ? needed : cells;
    }
    int64_t *edge = calloc(gaps * (cells + 1) + 1, sizeof *edge);
    for (size_t i = 0; i < gaps; i++)
        for (size_t cell = 0; cell <= cells; cell++) {
            int64_t low = from[i] + even[i] * width[i], at = low;
            uint32_t most = ensio_bin((uint64_t)(to[i] - 1 - low)), down = (uint32_t)(cell - (size_t)even[i]);
            if ((int64_t)cell < even[i])
                at = from[i] + (int64_t)cell * width[i];
            /* The first moment after which the rest lies in this bin or in a finer one. */
            else if ((int64_t)cell > even[i])
                at = down <= most ? to[i] - (int64_t)ensio_bin_low(most - down + 1) : to[i];
            edge[i * (cells + 1) + cell] = at > low || (int64_t)cell < even[i] ? at : low;
        }
    uint8_t transfers[8];
    for (size_t i = 0; i < sizeof transfers; i++)
        transfers[i] = take_byte(input) % 4 > 0;
    struct calls *calls = some_calls(input);
    for (size_t i = 0; i < calls->count; i++)
        calls->call[i] %= 10;
    const size_t n = calls->count, all = gaps * cells;
    const size_t bytes[16] = {8 * n,
                              8 * n,
                              2 * n,
                              n,
                              sizeof transfers,
                              8 * gaps,
                              8 * gaps,
                              8 * gaps,
                              8 * gaps,
                              8 * (all + gaps),
                              4 * (all + gaps),
                              8 * all,
                              8 * all,
                              8 * all,
                              4 * all,
                              8 * (gaps + 1)};
    const void *const data[16] = {calls->start, calls->duration, calls->call, calls->depth, transfers, from,
                                  to,           width,           even,        edge};
    static const char formats[] = "qqHBBqqqqqiqqqiq";
    struct fuzz_buffer array[16];
    PyObject *arguments = PyTuple_New(16);
    for (int i = 0; i < 16; i++) {
        array[i] = fuzz_buffer_of(data[i], bytes[i], (char[]){formats[i], '\0'});
        PyTuple_SetItem(arguments, i, Py_NewRef(array[i].view));
    }
    Py_XDECREF(fuzz_call(function("mark_gaps", &marks), arguments));
    for (int i = 0; i < 16; i++)
        fuzz_release(&array[i]);
    free(edge);
}

/* Calls of any kinds into cells between edges: each cell has the least and the largest of the starts in it. */
static void mark_starts(struct input *input)
{
    enum { KINDS = 2, FUNCTIONS = 8, ARRAYS = 6 };
    static PyObject *marks;
    const size_t edges = take_byte(input) % MOST_CELLS, cells = edges + 1;
    uint8_t kinds[FUNCTIONS];
    int64_t edge[MOST_CELLS], least[KINDS * (MOST_CELLS + 1)], most[KINDS * (MOST_CELLS + 1)];
    for (size_t i = 0; i < sizeof kinds; i++)
        kinds[i] = take_byte(input) % 8 ? (uint8_t)(i % (1 << KINDS)) : take_byte(input);
    for (size_t i = 0; i < edges; i++)
        edge[i] = (i ? edge[i - 1] : -LARGEST_NS) + (int64_t)(take_number(input) % (1ULL << 55));
    for (size_t i = 0; i < KINDS * cells; i++)
        least[i] = INT64_MAX, most[i] = INT64_MIN;
    const struct calls *calls = some_calls(input);
    const size_t n = calls->count, bytes = KINDS * cells * sizeof *least;
    struct fuzz_buffer array[ARRAYS] = {
        fuzz_buffer_of(calls->start, 8 * n, "q"), fuzz_buffer_of(calls->call, 2 * n, "H"),
        fuzz_buffer_of(kinds, sizeof kinds, "B"), fuzz_buffer_of(edge, 8 * edges, "q"),
        fuzz_buffer_of(least, bytes, "q"),        fuzz_buffer_of(most, bytes, "q")};
    PyObject *arguments = PyTuple_New(ARRAYS);
    for (int i = 0; i < ARRAYS; i++)
        PyTuple_SetItem(arguments, i, Py_NewRef(array[i].view));
    PyObject *const result = fuzz_call(function("mark_starts", &marks), arguments);
    const int64_t *const low = (const void *)array[4].memory, *const high = (const void *)array[5].memory;
    for (size_t i = 0; result && i < n; i++)
        for (size_t kind = 0; kind < KINDS; kind++)
            if (kinds[calls->call[i]] >> kind & 1) {
                size_t cell = 0;
                while (cell < edges && edge[cell] <= calls->start[i])
                    cell++;
                cell += kind * cells;
                HOLDS(low[cell] <= calls->start[i] && calls->start[i] <= high[cell]);
            }
    Py_XDECREF(result);
    for (int i = 0; i < ARRAYS; i++)
        fuzz_release(&array[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const all[])(struct input *) = {spool_columns, compact,      unshuffle, spread,
                                                  count_bins,    count_groups, mark_gaps, mark_starts};
    struct input input = {data, data + size};
    all[take_byte(&input) % (sizeof all / sizeof *all)](&input);
    return 0;
}
