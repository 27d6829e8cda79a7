#include "variable_blocks.h"

#include <inttypes.h>
#include <stdio.h>

const char *const variable_dimensions[VARIABLE_DIMENSIONS] = {"plane", "row", "byte"};

int variable_lengths(struct call_target *target, int64_t *lengths)
{
    const struct plan_operation *operation = target->operation;
    int64_t planes = operation->planes > 0 ? operation->planes : 1;
    int64_t rows = operation->pieces > 0 ? operation->pieces : 1;
    int64_t row = operation->bytes / planes / rows;
    if ((rows > 1 && operation->stride != row) || (planes > 1 && operation->plane_stride != rows * row)) {
        snprintf(target->problem, sizeof target->problem,
                 "cannot be made: the rows and planes of a variable follow each other without holes");
        return -1;
    }
    lengths[0] = planes;
    lengths[1] = rows;
    lengths[2] = row;
    return 0;
}

/* Whether the operation lies in the variable: its pieces are parts of rows, one below the other, and so are its planes.
 */
static int fits(const struct plan_operation *operation, const int64_t *lengths, const struct variable_block *block)
{
    int64_t plane_bytes = lengths[1] * lengths[2];
    if (block->count[1] > 1 && operation->stride != lengths[2])
        return 0;
    if (block->count[0] > 1 && operation->plane_stride != plane_bytes)
        return 0;
    for (int i = 0; i < VARIABLE_DIMENSIONS; i++)
        if (block->start[i] + block->count[i] > lengths[i])
            return 0;
    return 1;
}

int variable_block_of(struct call_target *target, const int64_t *lengths, struct variable_block *block)
{
    const struct plan_operation *operation = target->operation;
    int64_t row = lengths[2], plane_bytes = lengths[1] * lengths[2];
    int one = plan_is_contiguous(operation);
    *block = (struct variable_block){.count = {0, 0, 0}};
    if (operation->bytes == 0)
        return 0;
    block->count[0] = one ? 1 : operation->planes;
    block->count[1] = one ? 1 : operation->pieces;
    block->count[2] = operation->bytes / block->count[0] / block->count[1];
    if (one && operation->bytes > row && operation->offset % row == 0 && operation->bytes % row == 0) {
        /* One piece of whole rows, perhaps of whole planes. */
        int64_t rows = operation->bytes / row;
        int whole_planes = operation->offset % plane_bytes == 0 && operation->bytes % plane_bytes == 0;
        block->count[0] = whole_planes ? operation->bytes / plane_bytes : 1;
        block->count[1] = whole_planes ? lengths[1] : rows;
        block->count[2] = row;
        block->start[0] = operation->offset / plane_bytes;
        block->start[1] = operation->offset % plane_bytes / row;
        if (block->start[0] + block->count[0] <= lengths[0] && block->start[1] + block->count[1] <= lengths[1])
            return 0;
    } else {
        block->start[0] = operation->offset / plane_bytes;
        block->start[1] = operation->offset % plane_bytes / row;
        block->start[2] = operation->offset % row;
        if (fits(operation, lengths, block))
            return 0;
    }
    snprintf(target->problem, sizeof target->problem,
             "cannot be made: its pieces do not form a block of a variable of %" PRId64 " planes, %" PRId64
             " rows and %" PRId64 " bytes",
             lengths[0], lengths[1], lengths[2]);
    return -1;
}
