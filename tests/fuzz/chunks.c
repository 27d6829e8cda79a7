/* chunks.c: arbitrary bytes as a chunk of a trace.h5, and arbitrary rows against any index. A chunk that was deflated
 * here is restored. Whole chunks of a column are read together. */
#include "input.h"
#include "python.h"

#include <libdeflate.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

PyMODINIT_FUNC PyInit__chunks(void);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const formats[] = {"B", "H", "I", "Q", "q"};
static const size_t widths[] = {1, 2, 4, 8, 8};

/* A file in memory with these bytes; it is reused. */
static int file_with(const void *bytes, size_t length)
{
    static int descriptor = -1;
    if (descriptor < 0)
        descriptor = memfd_create("chunks", 0);
    if (descriptor < 0 || ftruncate(descriptor, 0) != 0 || pwrite(descriptor, bytes, length, 0) != (ssize_t)length) {
        perror("memfd");
        abort();
    }
    return descriptor;
}

static size_t deflated(const uint8_t *plain, size_t length, uint8_t *out, size_t room)
{
    static struct libdeflate_compressor *machine;
    if (!machine)
        machine = libdeflate_alloc_compressor(1);
    return libdeflate_zlib_compress(machine, plain, length, out, room);
}

/* Any chunks of a column, which are the same bytes of the file if they are sound. */
static void read_whole(struct input *input)
{
    enum { MOST_KNOWN = 4, MOST_WANTED = 5 };
    static PyObject *workspace_of, *read;
    static uint8_t coded[1 << 14];
    if (!read) {
        workspace_of = fuzz_function(PyInit__chunks, "workspace");
        read = fuzz_function(PyInit__chunks, "read_chunks");
    }
    const unsigned kind = take_byte(input) % 5, choices = take_byte(input);
    const size_t width = widths[kind], known = take_byte(input) % (MOST_KNOWN + 1);
    const size_t wanted = take_byte(input) % (MOST_WANTED + 1), count = take_number(input) % 512;
    const int sound = choices & 1, limited = choices & 2, zeroed = choices & 4;
    const int64_t least = (int64_t)take_number(input), most = (int64_t)take_number(input);
    uint64_t rows = take_number(input);
    int64_t chunk[MOST_WANTED], places[2 * MOST_KNOWN] = {0};
    for (size_t i = 0; i < wanted; i++)
        chunk[i] = sound && known ? (int64_t)(take_byte(input) % known) : (int64_t)take_number(input);
    for (size_t i = 0; !sound && i < 2 * known; i++)
        places[i] = (int64_t)take_number(input);
    const uint8_t *stored = input->at;
    size_t bytes = (size_t)(input->end - input->at);
    if (sound) {
        rows = bytes / width % 256;
        bytes = deflated(input->at, rows * width, coded, sizeof coded);
        stored = coded;
        for (size_t i = 0; i < known; i++)
            places[known + i] = (int64_t)bytes;
    }
    const int descriptor = file_with(stored, bytes);
    struct fuzz_buffer out = fuzz_buffer_of(NULL, count * width, formats[kind]);
    struct fuzz_buffer numbers = fuzz_buffer_of(chunk, 8 * wanted, "q");
    struct fuzz_buffer told = fuzz_buffer_of(places, 16 * known, "q");
    PyObject *const workspace = fuzz_call(workspace_of, PyTuple_New(0));
    PyObject *const limits = limited ? Py_BuildValue("(LL)", (long long)least, (long long)most) : Py_NewRef(Py_None);
    for (int time = 0; time < 2; time++) { /* the second read may use what the first one remembered */
        PyObject *const column =
            Py_BuildValue("(isiiOOO)", (int)(choices >> 4), "name", kind == 4, zeroed, told.view, out.view, limits);
        memset(out.memory, zeroed ? 0 : 0xa5, count * width);
        PyObject *const result =
            fuzz_call(read, Py_BuildValue("OiOL(N)", workspace, descriptor, numbers.view, (long long)rows, column));
        for (size_t i = 0; result && sound && i < count * width; i++)
            if (((uint8_t *)out.memory)[i] != input->at[i % width * rows + i / width % rows]) {
                fprintf(stderr, "byte %zu of %zu is another one\n", i, count * width);
                abort();
            }
        Py_XDECREF(result);
    }
    Py_DECREF(limits);
    Py_DECREF(workspace);
    fuzz_release(&told);
    fuzz_release(&numbers);
    fuzz_release(&out);
}

/* Rows in any order, and an index of one chunk that may not fit them. */
static void see_order(struct input *input)
{
    enum { MOST = 64, ARRAYS = 9 };
    static PyObject *are_sorted;
    if (!are_sorted)
        are_sorted = fuzz_function(PyInit__compiled, "are_chunks_sorted");
    uint32_t rank[MOST];
    int64_t start[MOST], duration[MOST], begin[MOST], ranks[MOST], chunk = 0, ends[2] = {0};
    const size_t count = take_byte(input) % MOST, groups = take_byte(input) % MOST;
    const uint8_t left_out = take_byte(input);
    int64_t max_end = (int64_t)take_number(input);
    for (size_t i = 0; i < groups; i++)
        begin[i] = (int64_t)take_number(input), ranks[i] = (int64_t)take_number(input);
    for (size_t i = 0; i < count; i++) {
        rank[i] = (uint32_t)take_number(input);
        start[i] = (int64_t)take_number(input), duration[i] = (int64_t)take_number(input);
    }
    if (count)
        ends[0] = start[0], ends[1] = start[count - 1];
    struct fuzz_buffer arrays[ARRAYS] = {
        fuzz_buffer_of(rank, 4 * count, "I"),     fuzz_buffer_of(start, 8 * count, "q"),
        fuzz_buffer_of(duration, 8 * count, "q"), fuzz_buffer_of(&chunk, 8, "q"),
        fuzz_buffer_of(begin, 8 * groups, "q"),   fuzz_buffer_of(ranks, 8 * groups, "q"),
        fuzz_buffer_of(&ends[0], 8, "q"),         fuzz_buffer_of(&ends[1], 8, "q"),
        fuzz_buffer_of(&max_end, 8, "q")};
    PyObject *const arguments = PyTuple_New(ARRAYS + 1);
    for (int i = 0; i < ARRAYS; i++)
        PyTuple_SetItem(arguments, i + (i > 3), Py_NewRef(i < 3 && left_out >> i & 1 ? Py_None : arrays[i].view));
    PyTuple_SetItem(arguments, 4, PyLong_FromSize_t(count));
    PyObject *const result = fuzz_call(are_sorted, arguments);
    if (result == Py_True && !(left_out & 3))
        for (size_t i = 1, group = 0; i < count; i++) {
            /* An index may start again within a rank: earlier rows then form another stretch. */
            while (group + 1 < groups && begin[group + 1] <= (int64_t)i)
                group++;
            if (begin[group] != (int64_t)i && start[i] < start[i - 1]) {
                fprintf(stderr, "row %zu starts before the one before it\n", i);
                abort();
            }
        }
    Py_XDECREF(result);
    for (int i = 0; i < ARRAYS; i++)
        fuzz_release(&arrays[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, data + size};
    if (take_byte(&input) % 4 == 0)
        see_order(&input);
    else
        read_whole(&input);
    return 0;
}
