/* memory.h: arrays that grow, and tables that few programs need, in memory that the recorder maps for itself. */
#ifndef ENSIO_CORE_MEMORY_H
#define ENSIO_CORE_MEMORY_H

#include "rawsys.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct ensio_array {
    uint8_t *bytes;
    uint64_t used, room;
};

/* Makes room for `bytes` more bytes and returns their address, or NULL without memory. The bytes do not count as used
 * yet. */
static inline void *ensio_array_room(struct ensio_array *array, uint64_t more)
{
    if (array->used + more > array->room) {
        uint64_t room = array->room ? array->room : 4096;
        while (room < array->used + more)
            room *= 2;
        uint8_t *got = array->bytes ? ensio_raw_grow(array->bytes, array->room, room) : ensio_raw_memory(room);
        if (!got)
            return NULL;
        array->bytes = got;
        array->room = room;
    }
    return array->bytes + array->used;
}

static inline void ensio_array_free(struct ensio_array *array)
{
    if (array->bytes)
        ensio_raw_unmap(array->bytes, array->room);
    *array = (struct ensio_array){0};
}

/* Adds an object to a list of unused ones. */
static inline void ensio_unused_put(void **unused, void *object)
{
    memcpy(object, unused, sizeof *unused);
    *unused = object;
}

/* An object of `bytes` bytes from a list of unused ones, which their first words link and which grows by blocks; NULL
 * without memory. The caller holds the lock. */
static inline void *ensio_unused_take(void **unused, uint64_t bytes)
{
    uint8_t *const block = *unused ? NULL : ensio_raw_memory(256 * bytes);
    for (uint64_t i = 0; block && i < 256; i++)
        ensio_unused_put(unused, block + i * bytes);
    void *const taken = *unused;
    if (taken)
        memcpy(unused, taken, sizeof *unused);
    return taken;
}

/* A table of zeros at `*place`, mapped by its first user; NULL without memory. Takes no lock and preserves errno. A
 * forked child has its parent's table. */
static inline void *ensio_table(void **place, uint64_t bytes)
{
    void *table = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    if (table)
        return table;
    const int error = errno;
    void *made = ensio_raw_memory(bytes);
    if (made && !__atomic_compare_exchange_n(place, &table, made, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        ensio_raw_unmap(made, bytes);
        made = table;
    }
    errno = error;
    return made;
}

/* Words of zeros by index, below 65,536, of which parts that are used are mapped, by their first user. */
#define ENSIO_WORDS_OF_PART 1024
struct ensio_words {
    void *parts[65536 / ENSIO_WORDS_OF_PART];
};

/* NULL if its part is not mapped; `makes`: maps it, NULL without memory. */
static inline uint64_t *ensio_word(struct ensio_words *words, uint32_t index, int makes)
{
    void **const part = &words->parts[index / ENSIO_WORDS_OF_PART];
    uint64_t *const first =
        makes ? ensio_table(part, ENSIO_WORDS_OF_PART * sizeof(uint64_t)) : __atomic_load_n(part, __ATOMIC_ACQUIRE);
    return first ? first + index % ENSIO_WORDS_OF_PART : NULL;
}

#endif
