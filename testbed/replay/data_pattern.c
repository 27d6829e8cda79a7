#include "data_pattern.h"

#include <string.h>

#define WORD_BYTES ((int64_t)sizeof(uint64_t))

/* Word `index` of a file: SplitMix64, which gives no two equal words in a file. */
static uint64_t word(uint64_t seed, int64_t file, int64_t index)
{
    uint64_t mixed = seed + ((uint64_t)file << 48) + (uint64_t)(index + 1) * 0x9e3779b97f4a7c15ULL;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
    return mixed ^ (mixed >> 31);
}

/* The bytes of the word at `offset` in a region with `left` bytes to go: all eight except at its ends. */
static size_t piece(uint64_t seed, int64_t file, int64_t offset, int64_t left, unsigned char bytes[WORD_BYTES])
{
    int64_t within = offset % WORD_BYTES;
    int64_t length = WORD_BYTES - within < left ? WORD_BYTES - within : left;
    uint64_t value = word(seed, file, offset / WORD_BYTES);
    memcpy(bytes, (const unsigned char *)&value + within, (size_t)length);
    return (size_t)length;
}

void data_pattern_fill(uint64_t seed, int64_t file, int64_t offset, int64_t bytes, unsigned char *data)
{
    unsigned char expected[WORD_BYTES];
    for (int64_t done = 0; done < bytes;) {
        size_t length = piece(seed, file, offset + done, bytes - done, expected);
        memcpy(data + done, expected, length);
        done += (int64_t)length;
    }
}

int64_t data_pattern_matches(uint64_t seed, int64_t file, int64_t offset, int64_t bytes, const unsigned char *data)
{
    unsigned char expected[WORD_BYTES];
    int64_t done = 0;
    while (done < bytes) {
        size_t length = piece(seed, file, offset + done, bytes - done, expected);
        if (memcmp(data + done, expected, length) != 0)
            break;
        done += (int64_t)length;
    }
    while (done < bytes) {
        piece(seed, file, offset + done, 1, expected);
        if (data[done] != expected[0])
            break;
        done++;
    }
    return done;
}
