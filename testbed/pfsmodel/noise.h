/* noise.h: random numbers that are functions of their purpose, not of the order of requests. */
#ifndef ENSIO_PFSMODEL_NOISE_H
#define ENSIO_PFSMODEL_NOISE_H

#include "state.h"

/* The purpose of a number: two purposes never share a number. */
enum noise_purpose {
    NOISE_TARGET = 1,
    NOISE_CALL,
    NOISE_HEAVY,
    NOISE_HEAVY_SIZE,
    NOISE_METADATA,
    NOISE_PAGES,
    NOISE_BURST,
    NOISE_TURN,
    NOISE_FIRST_TARGET,
    NOISE_STRAGGLER_TASK,
    NOISE_STRAGGLER_NODE,
    NOISE_SLOW_TARGET,
    NOISE_BACKGROUND,
    NOISE_SHARE
};

void noise_create(struct pfs *model);

uint64_t noise_bits(const struct pfs *model, enum noise_purpose purpose, uint64_t a, uint64_t b, uint64_t c);

/* In [0, 1). */
double noise_uniform(const struct pfs *model, enum noise_purpose purpose, uint64_t a, uint64_t b, uint64_t c);

/* Log-normal with mean 1; sigma is the standard deviation of the logarithm. */
double noise_factor(const struct pfs *model, double sigma, enum noise_purpose purpose, uint64_t a, uint64_t b,
                    uint64_t c);

#endif
