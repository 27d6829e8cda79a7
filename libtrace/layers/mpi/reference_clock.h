/* reference_clock.h: the times of all ranks by the clock of rank 0's node, computed as the readers do
 * (ensembles/readers/native/clock_alignment.py). */
#ifndef ENSIO_LAYERS_MPI_REFERENCE_CLOCK_H
#define ENSIO_LAYERS_MPI_REFERENCE_CLOCK_H

#include "node_gather.h"

#include <time/clock_line.h>

#include <ensio/event.h>

/* Converts this rank's ticks to ns since 1970 by that clock. All ranks call this together, each with the head of its
 * spool. */
struct ensio_clock_line ensio_reference_clock(struct ensio_node_gather *all, const struct ensio_spool *head);

#endif
