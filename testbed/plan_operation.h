/* plan_operation.h: a call as it lies in a plan, for the programs that follow plans. */
#ifndef ENSIO_PLAN_OPERATION_H
#define ENSIO_PLAN_OPERATION_H

#include <stdint.h>

/* One call. Indices count from 0 in the plan's lists. It moves `bytes` in `pieces` * `planes` pieces of the same
 * length, piece i of plane j at offset + j * plane_stride + i * stride. */
struct plan_operation {
    int64_t step;
    int64_t call;
    int64_t file; /* -1: none */
    /* where in the file the data begins, also of calls that do not say so themselves; of a message: the peer */
    int64_t offset;
    int64_t bytes;
    int64_t pieces;
    int64_t stride;
    int64_t planes;
    int64_t plane_stride;
};

#endif
