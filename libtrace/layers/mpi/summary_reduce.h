/* summary_reduce.h: merges the summaries of all ranks into one for the job file. */
#ifndef ENSIO_LAYERS_MPI_SUMMARY_REDUCE_H
#define ENSIO_LAYERS_MPI_SUMMARY_REDUCE_H

#include "node_gather.h"

#include <ensio/jobfile.h>

/* Merges the summaries within each node, then those of the nodes pairwise, appends the result to the file, and sets its
 * position in `head` of rank 0. Does nothing if no rank has a summary for the job file. Collective over all ranks;
 * returns 1, or 0 in all ranks if one of them failed. */
int ensio_summary_reduce(struct ensio_node_gather *all, struct ensio_job *head);

#endif
