/* plan_operation.h: a call in a plan, for the programs that execute plans. */
#ifndef ENSIO_PLAN_OPERATION_H
#define ENSIO_PLAN_OPERATION_H

#include <stdint.h>

/* The call of a row that has a further box of the call in the row before it. */
#define PLAN_FURTHER_BOX (-1)

/* One call, or a further box of one. Boxes of a call are in the order of the file. Indices refer to the plan's lists,
 * from 0. The call moves `bytes` in `pieces` * `planes` pieces of equal length, piece i of plane j at offset + j *
 * plane_stride + i * stride. */
struct plan_operation {
    int64_t step;
    int64_t call;
    int64_t file; /* -1: none */
    /* Where the data begin in the file, also for calls without an explicit offset; of a message: the peer. */
    int64_t offset;
    int64_t bytes;
    int64_t pieces;
    int64_t stride;
    int64_t planes;
    int64_t plane_stride;
};

#endif
