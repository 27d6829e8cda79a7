/* targets.h: the object targets, over which the stripes of a file go round. */
#ifndef ENSIO_PFSMODEL_TARGETS_H
#define ENSIO_PFSMODEL_TARGETS_H

#include "state.h"

/* Work on a range of a file. */
struct transfer {
    enum part_kind kind;
    int32_t task;
    int32_t file;
    int64_t offset;
    int64_t bytes;
    uint32_t number; /* of the call or the drain: its noise, and whose the parts are */
    float weight;
    double factor;         /* times as much work as its bytes are */
    double first_extra_ns; /* more work where it begins and ends */
    double last_extra_ns;
};

/* Puts the transfer's bytes to the link of its node and to the targets they lie on. Returns how many parts it has. */
int32_t targets_add(struct pfs *model, const struct transfer *transfer);

/* A commit: work on one target of the file that does not hang on bytes. */
int32_t targets_commit(struct pfs *model, int32_t task, double work_ms);

#endif
