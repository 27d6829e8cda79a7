/* ordinals.h: the how many-th call of its rank, file and op a call is. */
#ifndef ENSIO_SIMULATE_ORDINALS_H
#define ENSIO_SIMULATE_ORDINALS_H

#include <stdint.h>

struct ordinals;

struct ordinals *ordinals_begin(void);

/* From 1 on. */
uint32_t ordinal_next(struct ordinals *ordinals, uint32_t rank, uint32_t file, uint32_t op);

#endif
