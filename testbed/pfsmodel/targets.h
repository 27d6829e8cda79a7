/* targets.h: the object targets that store the stripes of files. */
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
    uint32_t number; /* index of the call or the drain: determines its noise and the owner of its parts */
    float weight;
    double factor;         /* ratio of its work to that of its bytes */
    double first_extra_ns; /* additional work at its beginning and end */
    double last_extra_ns;
};

/* Distributes the transfer's bytes to the link of its node and to their targets. Returns the number of parts. */
int32_t targets_add(struct pfs *model, const struct transfer *transfer);

/* A commit: work on one target of the file that does not depend on bytes. */
int32_t targets_commit(struct pfs *model, int32_t task, double work_ms);

#endif
