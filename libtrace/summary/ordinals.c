#include "ordinals.h"

#include <stddef.h>

/* At most three quarters full, so that searches are short. */
#define SLOTS 4096
#define MOST_COUNTERS (SLOTS / 4 * 3)

#define KEY_BITS 40

static struct counter {
    uint64_t key; /* in the bits above: the age; of another age: free */
    uint64_t calls;
} counters[SLOTS];
static uint64_t age = 1;
static uint32_t used;

uint64_t *ensio_ordinal_counter(uint32_t file, uint8_t op)
{
    uint64_t key = age << KEY_BITS | (uint64_t)file << 8 | op;
    uint32_t at = (file * 8 + op) % SLOTS; /* those of few files lie in few pages */
    for (; counters[at].key >> KEY_BITS == age; at = (at + 1) % SLOTS)
        if (counters[at].key == key)
            return &counters[at].calls;
    if (used == MOST_COUNTERS)
        return NULL;
    used++;
    counters[at] = (struct counter){.key = key};
    return &counters[at].calls;
}

void ensio_ordinals_forget(void)
{
    age++;
    used = 0;
}
