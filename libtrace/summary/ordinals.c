#include "ordinals.h"

#include <string.h>

/* At most three quarters full, so that searches are short. */
#define SLOTS 4096
#define MOST_COUNTERS (SLOTS / 4 * 3)

static struct counter {
    uint64_t key; /* 0: free */
    uint64_t calls;
} counters[SLOTS];
static uint32_t used;

uint64_t *ensio_ordinal_counter(uint32_t file, uint8_t op)
{
    uint64_t key = ((uint64_t)file << 8 | op) + 1;
    uint32_t at = (uint32_t)(key * 0x9e3779b97f4a7c15U >> 52);
    for (; counters[at].key; at = (at + 1) % SLOTS)
        if (counters[at].key == key)
            return &counters[at].calls;
    if (used == MOST_COUNTERS)
        return NULL;
    used++;
    counters[at].key = key;
    return &counters[at].calls;
}

void ensio_ordinals_forget(void)
{
    if (used)
        memset(counters, 0, sizeof counters);
    used = 0;
}
