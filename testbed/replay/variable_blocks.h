/* variable_blocks.h: the pieces of an operation as a block of a variable, for the layers netcdf and pnetcdf. A variable
 * has three dimensions: planes, rows of a plane, and bytes of a row. */
#ifndef ENSIO_REPLAY_VARIABLE_BLOCKS_H
#define ENSIO_REPLAY_VARIABLE_BLOCKS_H

#include "calls.h"

#include <stdint.h>

enum { VARIABLE_DIMENSIONS = 3 };

#define VARIABLE "data"
extern const char *const variable_dimensions[VARIABLE_DIMENSIONS];

struct variable_block {
    int64_t start[VARIABLE_DIMENSIONS];
    int64_t count[VARIABLE_DIMENSIONS];
};

/* Lengths of the dimensions of the variable that an operation creates. Returns 0, or -1 with a problem: the pieces
 * leave holes. */
int variable_lengths(struct call_target *target, int64_t *lengths);

/* The block that an operation moves, of a variable with these lengths. Returns 0, or -1 with a problem: the pieces
 * do not form one. */
int variable_block_of(struct call_target *target, const int64_t *lengths, struct variable_block *block);

#endif
