#include "file_data.h"

#include "data_pattern.h"

#include <inttypes.h>
#include <string.h>

static int64_t room(const struct plan *plan, const struct plan_operation *operation)
{
    (void)plan;
    return operation->bytes;
}

static int64_t pieces_of(const struct plan_operation *operation)
{
    return plan_is_contiguous(operation) ? 1 : operation->pieces * operation->planes;
}

/* The offset of a piece, counted through all planes. */
static int64_t begin_of(const struct plan_operation *operation, int64_t piece)
{
    if (plan_is_contiguous(operation))
        return operation->offset;
    return operation->offset + piece / operation->pieces * operation->plane_stride +
           piece % operation->pieces * operation->stride;
}

static void fill_written(const struct call_target *target)
{
    const struct plan_operation *operation = target->operation;
    int64_t pieces = pieces_of(operation);
    int64_t length = operation->bytes / pieces;
    for (int64_t i = 0; i < pieces; i++)
        data_pattern_fill(target->plan->seed, operation->file, begin_of(operation, i), length,
                          target->data + i * length);
}

/* Data that an earlier step left there would pass for data that was read. */
static void fill_read(const struct call_target *target)
{
    memset(target->data, 0, (size_t)target->operation->bytes);
}

static int is_right(struct call_target *target)
{
    const struct plan_operation *operation = target->operation;
    int64_t pieces = pieces_of(operation);
    int64_t length = operation->bytes / pieces;
    for (int64_t i = 0; i < pieces; i++) {
        int64_t begin = begin_of(operation, i);
        int64_t good =
            data_pattern_matches(target->plan->seed, operation->file, begin, length, target->data + i * length);
        if (good < length) {
            snprintf(target->problem, sizeof target->problem,
                     "returned other data than were written, from offset %" PRId64 " on", begin + good);
            return 0;
        }
    }
    return 1;
}

const struct call_data data_read = {.moves_file_bytes = 1, .room = room, .fill = fill_read, .is_right = is_right};
const struct call_data data_written = {.moves_file_bytes = 1, .room = room, .fill = fill_written};
