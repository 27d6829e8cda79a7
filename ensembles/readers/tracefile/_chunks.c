/* Decode chunks of a trace.h5 into columns. chunks.py documents the functions, and reads without them where libdeflate
 * is missing. The input is untrusted: a file may be damaged or forged. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <errno.h>
#include <libdeflate.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "summaries/processors.h"
#include "readers/common/shuffle.h"

enum {
    MOST_COLUMNS = 16,
    SOME_ITEMS = 2048, /* items that are unshuffled and checked while they are in the L1 cache */
    MUCH_SHORTER = 64, /* chunks with this compression ratio may have a single value */
    MOST_ROWS = 1 << 27,
};

/* The last chunk of a column with a single value, compressed. Most later chunks of the column are identical. */
struct single {
    uint8_t *stored, item[8];
    size_t stored_bytes, rows; /* 0: there is none */
    int width;
};

/* Memory of one thread, reused for each chunk: the kernel must clear and map new memory. */
struct workspace {
    struct libdeflate_decompressor *machine;
    uint8_t *stored, *plain;
    size_t stored_room, plain_room;
    struct single single[MOST_COLUMNS];
    int busy;
};

enum flaw { NONE, NO_MEMORY, NOT_READ, TOO_SHORT, DAMAGED, OTHER_LENGTH, BEYOND };

struct part {
    const char *name; /* name of the column, UTF-8 */
    PyObject *name_bytes;
    Py_buffer out;
    uint8_t *into; /* `count` items, within `out` */
    int number, width, is_signed, limited, zeroed;
    long long position, least, most;
    size_t stored_bytes, rows, count;
};

static const char workspace_name[] = "ensembles.readers.tracefile._chunks.workspace";

static int has_room(uint8_t **memory, size_t *room, size_t bytes)
{
    if (bytes <= *room)
        return 1;
    free(*memory);
    *memory = malloc(bytes);
    *room = *memory ? bytes : 0;
    return *memory != NULL;
}

#define BEYOND_LIMITS(type) \
    do { \
        const type *const value = items, base = (type)least; \
        unsigned beyond = 0; \
        for (size_t i = 0; i < count; i++) \
            beyond |= (type)(value[i] - base) > (type)span; \
        return (int)beyond; \
    } while (0)

/* Test whether an item is less than `least` or greater than `least` + `span`, modulo the width of an item. */
static inline int are_beyond(const void *items, size_t count, int width, uint64_t least, uint64_t span)
{
    if (width == 1)
        BEYOND_LIMITS(uint8_t);
    if (width == 2)
        BEYOND_LIMITS(uint16_t);
    if (width == 4)
        BEYOND_LIMITS(uint32_t);
    BEYOND_LIMITS(uint64_t);
}

/* Unshuffle items, and return whether one of them is outside of the limits of its column. */
FOR_EACH_PROCESSOR
static int put_in_place(const uint8_t *plain, const struct part *part)
{
    const uint64_t widest = part->width == 8 ? UINT64_MAX : ((uint64_t)1 << 8 * part->width) - 1;
    const int any = !part->limited || (!part->is_signed && (uint64_t)part->most >= widest && part->most >= 0);
    const uint64_t least = (uint64_t)part->least, span = (uint64_t)part->most - least;
    if (part->limited && part->most < part->least)
        return 1;
    int beyond = 0;
    for (size_t done = 0; done < part->count; done += SOME_ITEMS) {
        const size_t some = part->count - done < SOME_ITEMS ? part->count - done : SOME_ITEMS;
        uint8_t *const out = part->into + done * (size_t)part->width;
        put_together(plain, part->rows, done, some, part->width, out);
        if (!any)
            beyond |= are_beyond(out, some, part->width, least, span);
    }
    return beyond;
}

static void fill(const struct part *part, const uint8_t *item)
{
    static const uint8_t zero[8];
    if (part->zeroed && memcmp(item, zero, (size_t)part->width) == 0)
        return;
    uint8_t *const out = part->into;
    const size_t bytes = part->count * (size_t)part->width;
    size_t done = (size_t)part->width;
    int alike = 1;
    for (int k = 1; k < part->width; k++)
        alike &= item[k] == item[0];
    if (alike) {
        memset(out, item[0], bytes);
        return;
    }
    memcpy(out, item, done);
    for (size_t some; done < bytes; done += some) {
        some = done < 4096 ? done : 4096; /* fits into the L1 cache */
        some = some < bytes - done ? some : bytes - done;
        memcpy(out + done, out, some);
    }
}

/* Remember a chunk with a single value, which is the value of any item. */
static void remember(struct single *single, const struct workspace *space, const struct part *part)
{
    const size_t rows = part->rows;
    if (!part->stored_bytes || part->stored_bytes > rows * (size_t)part->width / MUCH_SHORTER)
        return;
    for (int k = 0; k < part->width; k++) {
        const uint8_t *const plane = space->plain + (size_t)k * rows;
        if (memcmp(plane, plane + 1, rows - 1) != 0)
            return;
    }
    free(single->stored);
    single->rows = 0;
    single->stored = malloc(part->stored_bytes);
    if (!single->stored)
        return;
    memcpy(single->stored, space->stored, part->stored_bytes);
    memcpy(single->item, part->into, (size_t)part->width);
    single->stored_bytes = part->stored_bytes, single->rows = rows, single->width = part->width;
}

static enum flaw read_part(struct workspace *space, int descriptor, const struct part *part)
{
    const size_t bytes = part->rows * (size_t)part->width;
    if (!has_room(&space->stored, &space->stored_room, part->stored_bytes) ||
        !has_room(&space->plain, &space->plain_room, bytes))
        return NO_MEMORY;
    for (size_t done = 0; done < part->stored_bytes;) {
        const ssize_t some = pread(descriptor, space->stored + done, part->stored_bytes - done,
                                   (off_t)(part->position + (long long)done));
        if (some < 0 && errno == EINTR)
            continue;
        if (some <= 0)
            return some < 0 ? NOT_READ : TOO_SHORT;
        done += (size_t)some;
    }
    struct single *const single = &space->single[part->number];
    if (single->rows == part->rows && single->width == part->width && single->stored_bytes == part->stored_bytes &&
        memcmp(single->stored, space->stored, part->stored_bytes) == 0) {
        fill(part, single->item);
        return NONE;
    }
    size_t length = 0;
    const enum libdeflate_result done =
        libdeflate_zlib_decompress(space->machine, space->stored, part->stored_bytes, space->plain, bytes, &length);
    if (done == LIBDEFLATE_INSUFFICIENT_SPACE || (done == LIBDEFLATE_SUCCESS && length != bytes))
        return OTHER_LENGTH;
    if (done != LIBDEFLATE_SUCCESS)
        return DAMAGED;
    if (put_in_place(space->plain, part))
        return BEYOND;
    remember(single, space, part);
    return NONE;
}

static void destroy(PyObject *capsule)
{
    struct workspace *const space = PyCapsule_GetPointer(capsule, workspace_name);
    if (!space)
        return;
    libdeflate_free_decompressor(space->machine);
    for (int i = 0; i < MOST_COLUMNS; i++)
        free(space->single[i].stored);
    free(space->stored);
    free(space->plain);
    free(space);
}

static PyObject *workspace(PyObject *module, PyObject *none)
{
    (void)module, (void)none;
    struct workspace *const space = calloc(1, sizeof *space);
    if (!space)
        return PyErr_NoMemory();
    space->machine = libdeflate_alloc_decompressor();
    if (!space->machine) {
        free(space);
        return PyErr_NoMemory();
    }
    PyObject *const capsule = PyCapsule_New(space, workspace_name, destroy);
    if (!capsule) {
        libdeflate_free_decompressor(space->machine);
        free(space);
    }
    return capsule;
}

/* Set what a part has of its column, and return whether `out` has items of a known width. It holds a reference to `out`
 * if `out.obj` is set, even after a failure. */
static int get_column(struct part *part, PyObject *name, PyObject *out, PyObject *limits)
{
    part->name_bytes = PyUnicode_AsUTF8String(name);
    if (!part->name_bytes)
        return -1;
    part->name = PyBytes_AsString(part->name_bytes);
    part->limited = limits != Py_None;
    if (part->limited) {
        if (!PyTuple_Check(limits)) {
            PyErr_SetString(PyExc_TypeError, "limits are a tuple");
            return -1;
        }
        if (!PyArg_ParseTuple(limits, "LL", &part->least, &part->most))
            return -1;
    }
    if (PyObject_GetBuffer(out, &part->out, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE) != 0)
        return -1;
    const Py_ssize_t width = part->out.itemsize;
    if ((width != 1 && width != 2 && width != 4 && width != 8) || part->number < 0 || part->number >= MOST_COLUMNS ||
        (!part->is_signed && part->least < 0)) {
        PyErr_SetString(PyExc_ValueError, "a part does not fit its chunk");
        return -1;
    }
    part->width = (int)width, part->count = (size_t)(part->out.len / width);
    part->into = part->out.buf;
    return 0;
}

/* Whether a chunk of `rows` rows can lie there. Deflated data exceed their content by at most a few bytes per block. */
static int set_place(struct part *part, long long position, long long stored_bytes)
{
    part->position = position, part->stored_bytes = (size_t)stored_bytes;
    return position >= 0 && stored_bytes >= 1 &&
           (unsigned long long)stored_bytes <= 2 * part->rows * (size_t)part->width + (1 << 16) &&
           position <= LLONG_MAX - stored_bytes;
}

static int refuse_place(const struct part *part)
{
    if (part->position < 0)
        PyErr_SetString(PyExc_ValueError, "a part does not fit its chunk");
    else
        PyErr_Format(PyExc_ValueError, "a part of its column %s has an impossible length", part->name);
    return -1;
}

/* Whole chunks of a column, one after the other in `out`. */
struct column {
    struct part part;
    Py_buffer places; /* positions of all chunks of the column, and then their lengths */
};

/* Parse the description of whole chunks of a column; `rows` of each but the last, which may have fewer. */
static int get_chunks(struct column *column, PyObject *told, long long rows, const int64_t *chunk, Py_ssize_t chunks)
{
    struct part *const part = &column->part;
    PyObject *name, *places, *out, *limits;
    if (!PyTuple_Check(told)) {
        PyErr_SetString(PyExc_TypeError, "a column is a tuple");
        return -1;
    }
    if (!PyArg_ParseTuple(told, "iO!ppOOO", &part->number, &PyUnicode_Type, &name, &part->is_signed, &part->zeroed,
                          &places, &out, &limits) ||
        get_column(part, name, out, limits) != 0 ||
        PyObject_GetBuffer(places, &column->places, PyBUF_C_CONTIGUOUS) != 0)
        return -1;
    const Py_ssize_t known = column->places.len / 16;
    const long long count = (long long)part->count;
    int fits = column->places.itemsize == 8 && column->places.len % 16 == 0 && rows >= 1 && rows <= MOST_ROWS;
    fits = fits && chunks <= count && count > (chunks - 1) * rows && count <= chunks * rows;
    for (Py_ssize_t i = 0; fits && i < chunks; i++)
        fits = chunk[i] >= 0 && chunk[i] < known;
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "the chunks do not fit their column");
        return -1;
    }
    part->rows = (size_t)rows;
    const int64_t *const position = column->places.buf;
    for (Py_ssize_t i = 0; i < chunks; i++)
        if (!set_place(part, position[chunk[i]], position[known + chunk[i]]))
            return refuse_place(part);
    return 0;
}

/* Point a part at one of the wanted chunks of its column. */
static void choose(struct column *column, size_t rows, const int64_t *chunk, Py_ssize_t i)
{
    struct part *const part = &column->part;
    const int64_t *const position = column->places.buf;
    const size_t before = (size_t)i * rows, all = (size_t)(part->out.len / part->width);
    part->count = all - before < rows ? all - before : rows;
    part->into = (uint8_t *)part->out.buf + before * (size_t)part->width;
    set_place(part, position[chunk[i]], position[column->places.len / 16 + chunk[i]]);
}

static void set_error(enum flaw flaw, const struct part *part, int number)
{
    if (flaw == NO_MEMORY)
        PyErr_NoMemory();
    else if (flaw == NOT_READ) {
        errno = number;
        PyErr_SetFromErrno(PyExc_OSError);
    } else if (flaw == BEYOND)
        PyErr_Format(PyExc_ValueError, "its column %s has values outside of %lld to %lld", part->name, part->least,
                     part->most);
    else if (flaw == TOO_SHORT)
        PyErr_Format(PyExc_ValueError, "a part of its column %s lies beyond its end", part->name);
    else if (flaw == OTHER_LENGTH)
        PyErr_SetString(PyExc_ValueError, "the length of its compressed data differs from the number of rows");
    else
        PyErr_SetString(PyExc_ValueError, "its compressed data are damaged");
}

/* Read whole chunks of columns: all columns of a chunk, then those of the next one. */
static PyObject *read_chunks(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *capsule, *told, *numbers, *result = NULL;
    Py_buffer wanted = {0};
    long long rows;
    int descriptor, number = 0;
    if (!PyArg_ParseTuple(args, "OiOLO!", &capsule, &descriptor, &numbers, &rows, &PyTuple_Type, &told))
        return NULL;
    struct workspace *const space = PyCapsule_GetPointer(capsule, workspace_name);
    if (!space)
        return NULL;
    if (space->busy) {
        PyErr_SetString(PyExc_RuntimeError, "two threads read with one workspace");
        return NULL;
    }
    if (PyObject_GetBuffer(numbers, &wanted, PyBUF_C_CONTIGUOUS) != 0)
        return NULL;
    const int64_t *const chunk = wanted.buf;
    const Py_ssize_t count = PyTuple_Size(told), chunks = wanted.len / 8;
    struct column *const columns = calloc(count ? (size_t)count : 1, sizeof *columns);
    Py_ssize_t at = 0;
    if (!columns)
        PyErr_NoMemory();
    else if (wanted.itemsize != 8 || chunks < 1)
        PyErr_SetString(PyExc_ValueError, "the chunks do not fit their column");
    else {
        while (at < count && get_chunks(&columns[at], PyTuple_GetItem(told, at), rows, chunk, chunks) == 0)
            at++;
        if (at == count) {
            enum flaw flaw = NONE;
            space->busy = 1;
            Py_BEGIN_ALLOW_THREADS
            for (Py_ssize_t i = 0; i < chunks && flaw == NONE; i++)
                for (at = 0; at < count && flaw == NONE; at++) {
                    choose(&columns[at], (size_t)rows, chunk, i);
                    flaw = read_part(space, descriptor, &columns[at].part);
                }
            number = errno;
            Py_END_ALLOW_THREADS
            space->busy = 0;
            if (flaw == NONE)
                result = Py_NewRef(Py_None);
            else
                set_error(flaw, &columns[at - 1].part, number);
        }
    }
    for (Py_ssize_t i = 0; columns && i < count; i++) {
        if (columns[i].part.out.obj)
            PyBuffer_Release(&columns[i].part.out);
        if (columns[i].places.obj)
            PyBuffer_Release(&columns[i].places);
        Py_XDECREF(columns[i].part.name_bytes);
    }
    free(columns);
    PyBuffer_Release(&wanted);
    return result;
}

static PyMethodDef methods[] = {{"workspace", workspace, METH_NOARGS, NULL},
                                {"read_chunks", read_chunks, METH_VARARGS, NULL},
                                {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT, .m_name = "_chunks", .m_size = 0, .m_methods = methods};

PyMODINIT_FUNC PyInit__chunks(void)
{
    return PyModule_Create(&definition);
}
