/* readahead.h: read-ahead of a node's client, including its treatment of strided reads. */
#ifndef ENSIO_PFSMODEL_READAHEAD_H
#define ENSIO_PFSMODEL_READAHEAD_H

#include "state.h"

/* The effect of a read. */
struct read_plan {
    int64_t offset; /* start of the range that is fetched from the targets */
    int64_t bytes;  /* 0: all data are in memory */
    double pages;   /* pages that are fetched one at a time */
};

struct read_plan readahead_read(struct pfs *model, int32_t task);

/* Updates the shares of read and written pages in the node's memory after a task's transfer. */
void readahead_has_read(struct pfs *model, int32_t task);
void readahead_has_written(struct pfs *model, int32_t task);

#endif
