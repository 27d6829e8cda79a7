#include "ordinals.h"

#include "fail.h"

#include <stdlib.h>

struct counter {
    uint32_t rank;
    uint32_t file_and_op;
    uint32_t calls; /* 0: free */
};

struct ordinals {
    struct counter *counters;
    uint64_t room; /* a power of two */
    uint64_t used;
};

struct ordinals *ordinals_begin(void)
{
    struct ordinals *ordinals = zeroed(1, sizeof *ordinals, "ordinals");
    ordinals->room = 1024;
    ordinals->counters = zeroed(ordinals->room, sizeof *ordinals->counters, "ordinals");
    return ordinals;
}

static struct counter *slot_of(const struct ordinals *ordinals, uint32_t rank, uint32_t file_and_op)
{
    const uint64_t key = (uint64_t)rank << 32 | file_and_op;
    /* only the upper half of a product depends on all bits */
    uint64_t at = (key ^ key >> 32) * 0x9e3779b97f4a7c15U >> 32;
    for (;; at++) {
        struct counter *counter = &ordinals->counters[at & (ordinals->room - 1)];
        if (!counter->calls || (counter->rank == rank && counter->file_and_op == file_and_op))
            return counter;
    }
}

static void grow(struct ordinals *ordinals)
{
    struct ordinals larger = {.room = 2 * ordinals->room, .used = ordinals->used};
    larger.counters = zeroed(larger.room, sizeof *larger.counters, "ordinals");
    for (uint64_t i = 0; i < ordinals->room; i++) {
        const struct counter *old = &ordinals->counters[i];
        if (old->calls)
            *slot_of(&larger, old->rank, old->file_and_op) = *old;
    }
    free(ordinals->counters);
    *ordinals = larger;
}

uint32_t ordinal_next(struct ordinals *ordinals, uint32_t rank, uint32_t file, uint32_t op)
{
    if (3 * ordinals->used > 2 * ordinals->room)
        grow(ordinals);
    struct counter *counter = slot_of(ordinals, rank, file << 3 | op);
    if (!counter->calls) {
        *counter = (struct counter){rank, file << 3 | op, 0};
        ordinals->used++;
    }
    return ++counter->calls;
}
