/* The ordinals of calls: a counter for each file and operation, up to a limit. */
#include "recorder_world.h"

#include <summary/ordinals.h>

#define MOST_COUNTERS 3072

/* Each file and operation has a separate counter, up to the limit; those that are there stay. */
static void ordinals(void)
{
    static uint64_t *counters[MOST_COUNTERS];
    uint32_t made = 0;
    for (uint32_t file = 0; made < MOST_COUNTERS; file = file * 2654435761U + 12345)
        for (uint8_t op = 0; op < 3; op++, made++) {
            counters[made] = ensio_ordinal_counter(file, op);
            CHECK(counters[made] && *counters[made] == 0);
            *counters[made] = made + 1;
        }
    CHECK(!ensio_ordinal_counter(77777, 1));
    made = 0;
    for (uint32_t file = 0; made < MOST_COUNTERS; file = file * 2654435761U + 12345)
        for (uint8_t op = 0; op < 3; op++, made++)
            CHECK(ensio_ordinal_counter(file, op) == counters[made] && *counters[made] == made + 1);
    ensio_ordinals_forget();
    CHECK(*ensio_ordinal_counter(0, 1) == 0 && *ensio_ordinal_counter(UINT32_MAX, 255) == 0);
}

int main(void)
{
    CASE(ordinals);
    return 0;
}
