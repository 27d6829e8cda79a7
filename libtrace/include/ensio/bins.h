/* bins.h: the bins of every duration histogram, in the recorder and in Python, which parses the numbers here.
 *
 * Durations are integer nanoseconds. Below 2^ENSIO_BIN_BITS each value has its own bin. Above, every octave [2^k,
 * 2^(k+1)) is divided into 2^ENSIO_BIN_BITS bins of equal width, so that no bin is wider than 1/2^ENSIO_BIN_BITS of its
 * lower edge (3.1 %). */
#ifndef ENSIO_BINS_H
#define ENSIO_BINS_H

#include <stdint.h>

#define ENSIO_BIN_BITS 5
#define ENSIO_BIN_COUNT 1920 /* (64 - ENSIO_BIN_BITS + 1) << ENSIO_BIN_BITS: all of uint64_t */

/* The bin of a duration. */
static inline uint32_t ensio_bin(uint64_t duration_ns)
{
    /* 0 below 64 */
    uint32_t octave = (63U ^ (uint32_t)__builtin_clzll(duration_ns | 1U << ENSIO_BIN_BITS)) - ENSIO_BIN_BITS;
    return (octave << ENSIO_BIN_BITS) + (uint32_t)(duration_ns >> octave);
}

/* The smallest duration of a bin; a bin ends where the next one begins. */
static inline uint64_t ensio_bin_low(uint32_t bin)
{
    if (bin < (2U << ENSIO_BIN_BITS))
        return bin;
    uint32_t octave = (bin >> ENSIO_BIN_BITS) - 1;
    return (uint64_t)((bin & ((1U << ENSIO_BIN_BITS) - 1)) + (1U << ENSIO_BIN_BITS)) << octave;
}

#endif
