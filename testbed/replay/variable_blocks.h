/* variable_blocks.h: the pieces of an operation as a block of a variable, for the layers netcdf and pnetcdf. A variable
 * has three dimensions: planes, rows of a plane, and bytes of a row; or four, if it was created of several boxes: boxes
 * in front of the others. */
#ifndef ENSIO_REPLAY_VARIABLE_BLOCKS_H
#define ENSIO_REPLAY_VARIABLE_BLOCKS_H

#include "calls.h"

#include <stdint.h>

enum { VARIABLE_DIMENSIONS = 4 };

#define VARIABLE "data"
extern const char *const variable_dimensions[VARIABLE_DIMENSIONS];

/* A variable of three dimensions has one box, and its list begins at VARIABLE_PLANES. */
enum { VARIABLE_BOXES, VARIABLE_PLANES, VARIABLE_ROWS, VARIABLE_BYTES };

/* A file, as this task has it open in one of the layers. */
struct variable_file {
    int file; /* negative: closed */
    int variable;
    int is_collective; /* netcdf: setting of the variable */
    int64_t lengths[VARIABLE_DIMENSIONS];
    int *requests; /* pnetcdf: posted, and not completed */
    int request_count;
    int request_room;
};

struct variable_block {
    int64_t start[VARIABLE_DIMENSIONS];
    int64_t count[VARIABLE_DIMENSIONS];
};

/* The first dimension that a variable with these lengths has. */
static inline int variable_first(const int64_t *lengths)
{
    return lengths[VARIABLE_BOXES] > 1 ? VARIABLE_BOXES : VARIABLE_PLANES;
}

/* Lengths of the dimensions of the variable that an operation creates. Returns 0, or -1 with a problem: the pieces
 * leave holes, or its boxes differ. */
int variable_lengths(struct call_target *target, int64_t *lengths);

/* The block that an operation moves, of a variable with these lengths. Returns 0, or -1 with a problem: the pieces
 * do not form one. */
int variable_block_of(struct call_target *target, const int64_t *lengths, struct variable_block *block);

/* Returns 0 if a variable of a file can have so many dimensions, or -1 with a problem. */
int variable_has_dimensions(struct call_target *target, int count);

#endif
