/* readahead.h: what a node's client reads before it is asked for, and what it makes of reads at even distances. */
#ifndef ENSIO_PFSMODEL_READAHEAD_H
#define ENSIO_PFSMODEL_READAHEAD_H

#include "state.h"

/* What a read comes to. */
struct read_plan {
    int64_t offset; /* of what is fetched from the targets */
    int64_t bytes;  /* 0: all of it is in memory */
    double pages;   /* of it that are fetched one at a time */
};

struct read_plan readahead_read(struct pfs *model, int32_t task);

/* The task's data has come or was written: whose are the pages of its node? */
void readahead_has_read(struct pfs *model, int32_t task);
void readahead_has_written(struct pfs *model, int32_t task);

#endif
