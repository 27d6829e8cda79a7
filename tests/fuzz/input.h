/* input.h: takes numbers from an input of libFuzzer. */
#ifndef ENSIO_FUZZ_INPUT_H
#define ENSIO_FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct input {
    const uint8_t *at, *end;
};

static inline uint8_t take_byte(struct input *input)
{
    return input->at < input->end ? *input->at++ : 0;
}

static inline uint64_t take_word(struct input *input)
{
    uint64_t word = 0;
    size_t left = (size_t)(input->end - input->at), bytes = left < sizeof word ? left : sizeof word;
    if (bytes)
        memcpy(&word, input->at, bytes);
    input->at += bytes;
    return word;
}

/* Mostly small numbers, and critical ones. */
static inline uint64_t take_number(struct input *input)
{
    static const uint64_t edges[] = {UINT64_MAX, INT64_MAX, 1ULL << 63, UINT64_MAX - 1, 1ULL << 62,
                                     UINT32_MAX, INT32_MAX, 1ULL << 31, 1ULL << 32,     70000,
                                     UINT16_MAX, 1 << 25,   1ULL << 60, 1ULL << 53};
    uint8_t byte = take_byte(input);
    if (byte < 0xf0)
        return byte;
    return byte < 0xf0 + sizeof edges / sizeof *edges ? edges[byte - 0xf0] : take_word(input);
}

#endif
