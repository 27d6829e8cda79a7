/* keyed_rows.h: growing tables of records that are found by whole numbers at their beginning. */
#ifndef ENSIO_KEYED_ROWS_H
#define ENSIO_KEYED_ROWS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Records of `bytes` bytes; the first `keys` numbers of 64 bits of each are its key. Zeroed before use. */
typedef struct {
    size_t bytes;
    int keys;
    uint32_t rows, room;
    char *records;
    uint32_t *slots; /* number of a record plus one */
    uint64_t mask;
    int64_t last; /* the record that was found last plus one: rows like the one before are frequent */
} keyed_rows;

static inline void *row_of(const keyed_rows *table, int64_t number)
{
    return table->records + (size_t)number * table->bytes;
}

static inline __attribute__((always_inline)) uint64_t hash_of_key(const int64_t *key, int keys)
{
    uint64_t hash = 0;
    for (int i = 0; i < keys; i++) {
        hash = (hash ^ (uint64_t)key[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    return hash;
}

static inline __attribute__((always_inline)) int is_key_of(const keyed_rows *table, int64_t number, const int64_t *key,
                                                           int keys)
{
    const int64_t *const other = row_of(table, number);
    int64_t differs = 0;
    for (int i = 0; i < keys; i++)
        differs |= other[i] ^ key[i];
    return !differs;
}

/* Double the slots and the room for records. Return -1 if there is no memory. */
static inline int grow_keyed(keyed_rows *table)
{
    const uint32_t room = table->room ? 2 * table->room : 64;
    if (room > UINT32_MAX / 4)
        return -1;
    char *records = realloc(table->records, room * table->bytes);
    if (!records)
        return -1;
    table->records = records;
    uint32_t *slots = calloc(2 * (size_t)room, sizeof *slots);
    if (!slots)
        return -1;
    free(table->slots);
    table->slots = slots;
    table->mask = 2 * (uint64_t)room - 1;
    table->room = room;
    for (uint32_t number = 0; number < table->rows; number++) {
        uint64_t at = hash_of_key(row_of(table, number), table->keys) & table->mask;
        while (slots[at])
            at = (at + 1) & table->mask;
        slots[at] = number + 1;
    }
    return 0;
}

/* Find the record of a key that is not the one found last, or add one. */
static __attribute__((noinline)) int64_t search_keyed(keyed_rows *table, const int64_t *key, int keys, int *is_new)
{
    if (table->rows == table->room && grow_keyed(table) != 0)
        return -1;
    uint64_t at = hash_of_key(key, keys) & table->mask;
    while (table->slots[at] && !is_key_of(table, table->slots[at] - 1, key, keys))
        at = (at + 1) & table->mask;
    if (!table->slots[at]) {
        char *const added = row_of(table, table->rows);
        memset(added, 0, table->bytes);
        memcpy(added, key, (size_t)keys * sizeof *key);
        table->slots[at] = ++table->rows;
        *is_new = 1;
    }
    table->last = table->slots[at];
    return table->last - 1;
}

/* Find the record of a key, or add one, which is zero but for its key. Return its number, or -1: no memory. A record
 * stays where it is until another one is added. `keys` is that of the table, known when this is compiled. */
static inline __attribute__((always_inline)) int64_t find_keyed(keyed_rows *table, const int64_t *key, int keys,
                                                                int *is_new)
{
    *is_new = 0;
    if (table->last && is_key_of(table, table->last - 1, key, keys))
        return table->last - 1;
    return search_keyed(table, key, keys, is_new);
}

static inline void free_keyed(keyed_rows *table)
{
    free(table->records);
    free(table->slots);
}

/* A matrix of 64-bit numbers as Python's bytes: columns one after the other. */
typedef struct {
    PyObject *bytes;
    int64_t *numbers;
    Py_ssize_t rows, filled;
} columns64;

/* Return -1 after an exception. */
static inline int make_columns64(columns64 *made, int columns, Py_ssize_t rows)
{
    made->bytes = PyBytes_FromStringAndSize(NULL, columns * rows * (Py_ssize_t)sizeof(int64_t));
    if (!made->bytes)
        return -1;
    made->numbers = (int64_t *)(void *)PyBytes_AsString(made->bytes);
    made->rows = rows, made->filled = 0;
    return 0;
}

/* Add a row: some whole numbers, and perhaps a real one behind them. */
static inline void put_row64(columns64 *made, const int64_t *numbers, int count, const double *real)
{
    for (int i = 0; i < count; i++)
        made->numbers[i * made->rows + made->filled] = numbers[i];
    if (real)
        memcpy(&made->numbers[count * made->rows + made->filled], real, sizeof *real);
    made->filled++;
}

#endif
