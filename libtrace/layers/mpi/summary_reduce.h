/* summary_reduce.h: the summaries of all ranks put together, into one for the job file. */
#ifndef ENSIO_LAYERS_MPI_SUMMARY_REDUCE_H
#define ENSIO_LAYERS_MPI_SUMMARY_REDUCE_H

#include "node_gather.h"

#include <ensio/jobfile.h>

/* Puts the summaries together, first those of each node, then those of the nodes, pair by pair, and the result behind
 * what is in the file; in `head` of rank 0 is then said where. Nothing is done where no rank has one that goes into the
 * job file. All ranks call this together; 1, or 0 where it failed in one of them, the same in all. */
int ensio_summary_reduce(struct ensio_node_gather *all, struct ensio_job *head);

#endif
