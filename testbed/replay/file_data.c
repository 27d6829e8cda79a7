#include "file_data.h"

#include "data_pattern.h"

#include <inttypes.h>
#include <string.h>

static int64_t room(const struct plan *plan, const struct plan_operation *operation)
{
    (void)plan;
    return plan_bytes(operation);
}

static int64_t pieces_of(const struct plan_operation *box)
{
    return plan_is_one_piece(box) ? 1 : box->pieces * box->planes;
}

/* The offset of a piece, counted through all planes. */
static int64_t begin_of(const struct plan_operation *box, int64_t piece)
{
    if (plan_is_one_piece(box))
        return box->offset;
    return box->offset + piece / box->pieces * box->plane_stride + piece % box->pieces * box->stride;
}

static void fill_written(const struct call_target *target)
{
    unsigned char *data = target->data;
    for (const struct plan_operation *box = target->operation; box < plan_next(target->operation); box++) {
        int64_t pieces = pieces_of(box);
        int64_t length = box->bytes / pieces;
        for (int64_t i = 0; i < pieces; i++, data += length)
            data_pattern_fill(target->plan->seed, box->file, begin_of(box, i), length, data);
    }
}

/* Data that an earlier step left there would pass for data that was read. */
static void fill_read(const struct call_target *target)
{
    memset(target->data, 0, (size_t)plan_bytes(target->operation));
}

static int is_right(struct call_target *target)
{
    const unsigned char *data = target->data;
    for (const struct plan_operation *box = target->operation; box < plan_next(target->operation); box++) {
        int64_t pieces = pieces_of(box);
        int64_t length = box->bytes / pieces;
        for (int64_t i = 0; i < pieces; i++, data += length) {
            int64_t begin = begin_of(box, i);
            int64_t good = data_pattern_matches(target->plan->seed, box->file, begin, length, data);
            if (good < length) {
                snprintf(target->problem, sizeof target->problem,
                         "returned other data than were written, from offset %" PRId64 " on", begin + good);
                return 0;
            }
        }
    }
    return 1;
}

const struct call_data data_read = {.moves_file_bytes = 1, .room = room, .fill = fill_read, .is_right = is_right};
const struct call_data data_written = {.moves_file_bytes = 1, .room = room, .fill = fill_written};
