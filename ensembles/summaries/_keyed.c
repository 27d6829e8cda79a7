/* Sums, least and most values of rows that have equal keys. keyed_sums.py documents the function. */
#include "_compiled.h"
#include "summaries/arrays.h"
#include "summaries/keyed_rows.h"

#include <stdint.h>
#include <string.h>

enum { MOST_KEYS = 8, MOST_VALUES = 16, BLOCK = 2048 };
enum { VALUES = MOST_KEYS, TAKEN = VALUES + MOST_VALUES, ROW_OF, ARRAYS }; /* the keys come first */

/* Whether a column is added or its least or most value is kept; in capitals for real numbers. */
static const char WAYS[] = "slmSLM";

typedef union {
    int64_t whole;
    double real;
} number;

typedef struct {
    Py_buffer views[ARRAYS];
    const char *ways;
    int key_count, value_count;
    Py_ssize_t rows;
    keyed_rows table; /* of a row: its keys, how many were taken, its values */
    int64_t key[BLOCK][MOST_KEYS];
    uint16_t from[BLOCK]; /* taken rows of the block */
    uint32_t into[BLOCK]; /* and the records they belong to */
} keyed_job;

/* Widen a key of some rows to 64 bits. */
static void widen(keyed_job *job, int key, Py_ssize_t first, int count)
{
    const char *const items = (const char *)job->views[key].buf + first * job->views[key].itemsize;
    for (int i = 0; i < count; i++)
        switch (job->views[key].itemsize) {
        case 1:
            job->key[i][key] = ((const uint8_t *)items)[i];
            break;
        case 2:
            job->key[i][key] = ((const uint16_t *)(const void *)items)[i];
            break;
        case 4:
            job->key[i][key] = ((const uint32_t *)(const void *)items)[i];
            break;
        default:
            job->key[i][key] = ((const int64_t *)(const void *)items)[i];
        }
}

/* Begin a new record: sums are zero. */
static void begin(const keyed_job *job, number *values)
{
    for (int i = 0; i < job->value_count; i++)
        switch (job->ways[i]) {
        case 'l':
            values[i].whole = INT64_MAX;
            break;
        case 'm':
            values[i].whole = INT64_MIN;
            break;
        case 'L':
            values[i].real = (double)INFINITY;
            break;
        case 'M':
            values[i].real = -(double)INFINITY;
            break;
        default:
            break;
        }
}

/* Find the records of some rows. Return how many rows are taken, or -1: no memory. */
static inline __attribute__((always_inline)) int find_records(keyed_job *job, Py_ssize_t first, int count, int keys)
{
    const uint8_t *const taken = job->views[TAKEN].buf;
    int32_t *const row_of_all = job->views[ROW_OF].buf;
    int found = 0;
    for (int i = 0; i < count; i++) {
        if (taken && !taken[first + i]) {
            if (row_of_all)
                row_of_all[first + i] = -1;
            continue;
        }
        int is_new;
        const int64_t place = find_keyed(&job->table, job->key[i], keys, &is_new);
        if (place < 0)
            return -1;
        number *const record = row_of(&job->table, place);
        record[keys].whole++;
        if (is_new)
            begin(job, record + keys + 1);
        if (row_of_all)
            row_of_all[first + i] = (int32_t)place;
        job->from[found] = (uint16_t)i;
        job->into[found++] = (uint32_t)place;
    }
    return found;
}

#define FOLD(type, member, expression) \
    for (int i = 0; i < count; i++) { \
        const type value = ((const type *)items)[first + job->from[i]]; \
        number *const held = (number *)row_of(&job->table, job->into[i]) + place; \
        held->member = expression; \
    } \
    break

/* Fold one column of the taken rows into their records. Overflow wraps, as in NumPy. */
static void fold(keyed_job *job, int column, Py_ssize_t first, int count)
{
    const void *const items = job->views[VALUES + column].buf;
    const int place = job->key_count + 1 + column;
    switch (job->ways[column]) {
    case 's':
        FOLD(int64_t, whole, (int64_t)((uint64_t)held->whole + (uint64_t)value));
    case 'l':
        FOLD(int64_t, whole, value < held->whole ? value : held->whole);
    case 'm':
        FOLD(int64_t, whole, value > held->whole ? value : held->whole);
    case 'S':
        FOLD(double, real, held->real + value);
    case 'L':
        FOLD(double, real, value < held->real ? value : held->real);
    default:
        FOLD(double, real, value > held->real ? value : held->real);
    }
}

/* Return -1 if there is no memory. */
static int fold_rows(keyed_job *job)
{
    for (Py_ssize_t first = 0; first < job->rows; first += BLOCK) {
        const int rows = (int)(job->rows - first < BLOCK ? job->rows - first : BLOCK);
        for (int key = 0; key < job->key_count; key++)
            widen(job, key, first, rows);
        int count;
        switch (job->key_count) { /* known when this is compiled: comparing keys is most of the work */
        case 1:
            count = find_records(job, first, rows, 1);
            break;
        case 2:
            count = find_records(job, first, rows, 2);
            break;
        case 3:
            count = find_records(job, first, rows, 3);
            break;
        case 4:
            count = find_records(job, first, rows, 4);
            break;
        default:
            count = find_records(job, first, rows, job->key_count);
        }
        if (count < 0)
            return -1;
        for (int column = 0; column < job->value_count; column++)
            fold(job, column, first, count);
    }
    return 0;
}

static int get_columns(keyed_job *job, PyObject *keys, PyObject *values, PyObject *taken, PyObject *row_of_all)
{
    PyObject *objects[ARRAYS];
    array_kind wanted[ARRAYS];
    for (int i = 0; i < ARRAYS; i++) {
        const int of_keys = i < MOST_KEYS, place = of_keys ? i : i - MOST_KEYS;
        const int is_used = place < (of_keys ? job->key_count : job->value_count);
        objects[i] = is_used ? PyTuple_GetItem(of_keys ? keys : values, place) : Py_None;
        wanted[i] = (array_kind){"a column", of_keys ? 0 : sizeof(number), OR_NONE};
    }
    objects[TAKEN] = taken, wanted[TAKEN].item_bytes = 1;
    objects[ROW_OF] = row_of_all, wanted[ROW_OF] = (array_kind){"row_of", 4, OR_NONE | WRITTEN};
    return get_arrays(job->views, objects, wanted, ARRAYS, ARRAYS);
}

static PyObject *sum_by_keys(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *keys, *values, *taken, *row_of_all, *result = NULL;
    const char *ways;
    if (!PyArg_ParseTuple(args, "O!O!sOO", &PyTuple_Type, &keys, &PyTuple_Type, &values, &ways, &taken, &row_of_all))
        return NULL;
    const Py_ssize_t key_count = PyTuple_Size(keys), value_count = PyTuple_Size(values);
    if (key_count < 1 || key_count > MOST_KEYS || value_count > MOST_VALUES ||
        (Py_ssize_t)strspn(ways, WAYS) != value_count || ways[value_count]) {
        PyErr_Format(PyExc_ValueError, "there must be one to %d keys, and at most %d columns, each with its way: %s",
                     MOST_KEYS, MOST_VALUES, WAYS);
        return NULL;
    }
    keyed_job *const job = PyMem_Calloc(1, sizeof *job);
    if (!job)
        return PyErr_NoMemory();
    job->ways = ways;
    job->key_count = (int)key_count, job->value_count = (int)value_count;
    const int numbers = job->key_count + 1 + job->value_count;
    job->table = (keyed_rows){.bytes = (size_t)numbers * sizeof(number), .keys = job->key_count};
    if (get_columns(job, keys, values, taken, row_of_all) == 0) {
        job->rows = length_of(&job->views[0]);
        int failed;
        columns64 made;
        Py_BEGIN_ALLOW_THREADS
        failed = fold_rows(job);
        Py_END_ALLOW_THREADS
        if (failed)
            PyErr_NoMemory();
        else if (make_columns64(&made, numbers, job->table.rows) == 0) {
            for (uint32_t row = 0; row < job->table.rows; row++)
                put_row64(&made, row_of(&job->table, row), numbers, NULL);
            result = made.bytes;
        }
    }
    free_keyed(&job->table);
    release_arrays(job->views, ARRAYS);
    PyMem_Free(job);
    return result;
}

PyMethodDef keyed_functions[] = {{"sum_by_keys", sum_by_keys, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};
