/* Find rows with equal keys. keyed_sums.py documents the functions. */
#include "_compiled.h"
#include "summaries/arrays.h"

#include <stdint.h>
#include <stdlib.h>

enum { MOST_KEYS = 8, LEAST_SLOTS = 256 };

/* An open-addressing table of groups: a slot holds the number of a group plus one. */
typedef struct {
    const int64_t *keys[MOST_KEYS];
    int key_count;
    Py_ssize_t rows, groups;
    int32_t *group; /* of each row */
    int64_t *first; /* row of each group */
    uint32_t *slots;
    uint64_t mask;
} grouping;

static uint64_t hash_of(const grouping *g, Py_ssize_t row)
{
    uint64_t hash = 0;
    for (int i = 0; i < g->key_count; i++) {
        hash = (hash ^ (uint64_t)g->keys[i][row]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    return hash;
}

static int are_equal(const grouping *g, Py_ssize_t one, Py_ssize_t other)
{
    for (int i = 0; i < g->key_count; i++)
        if (g->keys[i][one] != g->keys[i][other])
            return 0;
    return 1;
}

/* Double the table. Return -1 if there is no memory. */
static int grow(grouping *g)
{
    const uint64_t size = g->slots ? 2 * (g->mask + 1) : LEAST_SLOTS;
    uint32_t *slots = calloc((size_t)size, sizeof *slots);
    if (!slots)
        return -1;
    free(g->slots);
    g->slots = slots;
    g->mask = size - 1;
    for (Py_ssize_t number = 0; number < g->groups; number++) {
        uint64_t at = hash_of(g, g->first[number]) & g->mask;
        while (slots[at])
            at = (at + 1) & g->mask;
        slots[at] = (uint32_t)number + 1;
    }
    return 0;
}

static int find_groups(grouping *g)
{
    for (Py_ssize_t row = 0; row < g->rows; row++) {
        /* Calls like the one before are frequent. */
        if (row > 0 && are_equal(g, row, row - 1)) {
            g->group[row] = g->group[row - 1];
            continue;
        }
        if (2 * (uint64_t)g->groups >= (g->slots ? g->mask : 0) && grow(g) != 0)
            return -1;
        uint64_t at = hash_of(g, row) & g->mask;
        while (g->slots[at] && !are_equal(g, row, g->first[g->slots[at] - 1]))
            at = (at + 1) & g->mask;
        if (!g->slots[at]) {
            g->first[g->groups++] = row;
            g->slots[at] = (uint32_t)g->groups;
        }
        g->group[row] = (int32_t)g->slots[at] - 1;
    }
    return 0;
}

static PyObject *group_rows(PyObject *module, PyObject *args)
{
    (void)module;
    enum { GROUP, FIRST, KEYS };
    static const array_kind wanted[KEYS + MOST_KEYS] = {
        {"group", 4, WRITTEN}, {"first", 8, WRITTEN}, {"key", 8, 0}, {"key", 8, 0}, {"key", 8, 0},
        {"key", 8, 0},         {"key", 8, 0},         {"key", 8, 0}, {"key", 8, 0}, {"key", 8, 0}};
    Py_buffer views[KEYS + MOST_KEYS] = {0};
    PyObject *result = NULL;
    const int arrays = (int)PyTuple_Size(args);
    if (arrays <= KEYS || arrays > KEYS + MOST_KEYS) {
        PyErr_Format(PyExc_TypeError, "there must be one to %d keys", MOST_KEYS);
        return NULL;
    }
    if (get_only_arrays(views, args, wanted, arrays, arrays) != 0)
        goto done;
    grouping g = {.key_count = arrays - KEYS,
                  .rows = length_of(&views[GROUP]),
                  .group = views[GROUP].buf,
                  .first = views[FIRST].buf};
    if (g.rows > INT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "there are too many rows");
        goto done;
    }
    for (int i = 0; i < g.key_count; i++)
        g.keys[i] = views[KEYS + i].buf;
    int failed;
    Py_BEGIN_ALLOW_THREADS
    failed = find_groups(&g);
    free(g.slots);
    Py_END_ALLOW_THREADS
    result = failed ? PyErr_NoMemory() : PyLong_FromSsize_t(g.groups);
done:
    release_arrays(views, arrays);
    return result;
}

/* The row before each row in its group, or -1. Return the first row whose group has no entry in `last`, or -1. */
PyMethodDef group_functions[] = {{"group_rows", group_rows, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};
