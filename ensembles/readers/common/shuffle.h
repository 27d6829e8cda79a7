/* HDF5's shuffle filter and its inverse: byte k of item i is at k * items + i. */
#ifndef ENSIO_SHUFFLE_H
#define ENSIO_SHUFFLE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Copy `count` items of `width` bytes (1, 2, 4 or 8), beginning with item `first`. */
static inline void put_together(const uint8_t *restrict shuffled, size_t items, size_t first, size_t count, int width,
                                uint8_t *restrict out)
{
    const uint8_t *const from = shuffled + first;
    if (width == 1) {
        memcpy(out, from, count);
    } else if (width == 2) {
        for (size_t i = 0; i < count; i++) {
            out[2 * i] = from[i];
            out[2 * i + 1] = from[items + i];
        }
    } else if (width == 4) {
        for (size_t i = 0; i < count; i++)
            for (size_t k = 0; k < 4; k++)
                out[4 * i + k] = from[k * items + i];
    } else {
        for (size_t i = 0; i < count; i++)
            for (size_t k = 0; k < 8; k++)
                out[8 * i + k] = from[k * items + i];
    }
}

/* The inverse of `put_together`, of `count` items at the beginning. */
static inline void take_apart(const uint8_t *restrict plain, size_t items, size_t count, int width,
                              uint8_t *restrict out)
{
    if (width == 1) {
        memcpy(out, plain, count);
    } else if (width == 2) {
        for (size_t i = 0; i < count; i++) {
            out[i] = plain[2 * i];
            out[items + i] = plain[2 * i + 1];
        }
    } else if (width == 4) {
        for (size_t i = 0; i < count; i++)
            for (size_t k = 0; k < 4; k++)
                out[k * items + i] = plain[4 * i + k];
    } else {
        for (size_t i = 0; i < count; i++)
            for (size_t k = 0; k < 8; k++)
                out[k * items + i] = plain[8 * i + k];
    }
}

#endif
