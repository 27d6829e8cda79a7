/* ordinals.h: the ordinal of a call: its index among the calls of its rank, file and op. */
#ifndef ENSIO_SIMULATE_ORDINALS_H
#define ENSIO_SIMULATE_ORDINALS_H

#include <stdint.h>

struct ordinals;

struct ordinals *ordinals_begin(void);

/* The next ordinal, from 1. */
uint32_t ordinal_next(struct ordinals *ordinals, uint32_t rank, uint32_t file, uint32_t op);

#endif
