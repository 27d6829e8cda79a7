#include "variable_blocks.h"

#include <inttypes.h>
#include <stdio.h>

const char *const variable_dimensions[VARIABLE_DIMENSIONS] = {"box", "plane", "row", "byte"};

/* Whether all boxes of an operation are the first one, further in the file by multiples of `distance`. */
static int are_alike(const struct plan_operation *operation, int64_t distance)
{
    for (const struct plan_operation *box = operation; box < plan_next(operation); box++)
        if (box->offset != operation->offset + (box - operation) * distance || box->bytes != operation->bytes ||
            box->pieces != operation->pieces || box->stride != operation->stride || box->planes != operation->planes ||
            box->plane_stride != operation->plane_stride)
            return 0;
    return 1;
}

int variable_lengths(struct call_target *target, int64_t *lengths)
{
    const struct plan_operation *operation = target->operation;
    int64_t planes = operation->planes > 0 ? operation->planes : 1;
    int64_t rows = operation->pieces > 0 ? operation->pieces : 1;
    int64_t row = operation->bytes / planes / rows;
    if ((rows > 1 && operation->stride != row) || (planes > 1 && operation->plane_stride != rows * row) ||
        !are_alike(operation, operation->bytes)) {
        snprintf(
            target->problem, sizeof target->problem,
            "cannot be made: the rows and planes of a variable follow each other without holes, and so do its boxes");
        return -1;
    }
    lengths[VARIABLE_BOXES] = plan_next(operation) - operation;
    lengths[VARIABLE_PLANES] = planes;
    lengths[VARIABLE_ROWS] = rows;
    lengths[VARIABLE_BYTES] = row;
    return 0;
}

static int is_inside(const int64_t *lengths, const struct variable_block *block)
{
    for (int i = 0; i < VARIABLE_DIMENSIONS; i++)
        if (block->start[i] + block->count[i] > lengths[i])
            return 0;
    return 1;
}

/* Whether the pieces of the operation are parts of rows, one below the other, and so are its planes and boxes. */
static int is_block(const struct plan_operation *operation, const int64_t *lengths, const struct variable_block *block)
{
    int64_t plane_bytes = lengths[VARIABLE_ROWS] * lengths[VARIABLE_BYTES];
    if (block->count[VARIABLE_ROWS] > 1 && operation->stride != lengths[VARIABLE_BYTES])
        return 0;
    if (block->count[VARIABLE_PLANES] > 1 && operation->plane_stride != plane_bytes)
        return 0;
    return are_alike(operation, lengths[VARIABLE_PLANES] * plane_bytes);
}

int variable_block_of(struct call_target *target, const int64_t *lengths, struct variable_block *block)
{
    const struct plan_operation *operation = target->operation;
    int64_t row = lengths[VARIABLE_BYTES], plane_bytes = lengths[VARIABLE_ROWS] * row;
    int64_t box_bytes = lengths[VARIABLE_PLANES] * plane_bytes, offset = operation->offset % box_bytes;
    int one = plan_is_contiguous(operation), is_good = 1;
    *block = (struct variable_block){.count = {0}};
    if (operation->bytes == 0)
        return 0;
    block->start[VARIABLE_BOXES] = operation->offset / box_bytes;
    block->start[VARIABLE_PLANES] = offset / plane_bytes;
    block->start[VARIABLE_ROWS] = offset % plane_bytes / row;
    block->count[VARIABLE_BOXES] = plan_next(operation) - operation;
    block->count[VARIABLE_PLANES] = one ? 1 : operation->planes;
    block->count[VARIABLE_ROWS] = one ? 1 : operation->pieces;
    block->count[VARIABLE_BYTES] = operation->bytes / block->count[VARIABLE_PLANES] / block->count[VARIABLE_ROWS];
    if (one && operation->bytes > row && offset % row == 0 && operation->bytes % row == 0) {
        /* One piece of whole rows, perhaps of whole planes. */
        int64_t rows = operation->bytes / row;
        int whole_planes = offset % plane_bytes == 0 && operation->bytes % plane_bytes == 0;
        block->count[VARIABLE_PLANES] = whole_planes ? operation->bytes / plane_bytes : 1;
        block->count[VARIABLE_ROWS] = whole_planes ? lengths[VARIABLE_ROWS] : rows;
        block->count[VARIABLE_BYTES] = row;
    } else {
        block->start[VARIABLE_BYTES] = offset % row;
        is_good = is_block(operation, lengths, block);
    }
    if (is_good && is_inside(lengths, block))
        return 0;
    snprintf(target->problem, sizeof target->problem,
             "cannot be made: its pieces do not form a block of a variable of %" PRId64 " planes, %" PRId64
             " rows and %" PRId64 " bytes",
             lengths[VARIABLE_BOXES] * lengths[VARIABLE_PLANES], lengths[VARIABLE_ROWS], lengths[VARIABLE_BYTES]);
    return -1;
}

int variable_has_dimensions(struct call_target *target, int count)
{
    if (count == VARIABLE_DIMENSIONS || count == VARIABLE_DIMENSIONS - 1)
        return 0;
    snprintf(target->problem, sizeof target->problem, "has a variable of %d dimensions instead of %d or %d", count,
             VARIABLE_DIMENSIONS - 1, VARIABLE_DIMENSIONS);
    return -1;
}
