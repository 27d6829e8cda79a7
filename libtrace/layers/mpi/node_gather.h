/* node_gather.h: a file that all ranks of MPI_COMM_WORLD write together. The ranks of a node send their data to one of
 * them, the leader, and only leaders write, so that a few large writes replace many small ones. */
#ifndef ENSIO_LAYERS_MPI_NODE_GATHER_H
#define ENSIO_LAYERS_MPI_NODE_GATHER_H

#include "abi.h"

struct ensio_node_gather {
    const struct ensio_mpi *mpi;
    uintptr_t node, leaders; /* communicators; `leaders` only in a leader */
    int rank, tasks;         /* in MPI_COMM_WORLD */
    int node_rank, node_tasks;
    const char *path; /* path of the file, or NULL; only in a leader */
    uint64_t end;     /* current end of the file; only in a leader */
    int error;        /* the first error of this rank, as an errno */
    int64_t *numbers; /* working memory for each rank of the node; only in a leader */
};

/* The maximum of a number over all ranks. */
int64_t ensio_node_gather_max(struct ensio_node_gather *all, int64_t number);

/* Begins. 0: the communicators could not be made in every rank, and no other function may be called. */
int ensio_node_gather_begin(struct ensio_node_gather *all, const struct ensio_mpi *mpi);
void ensio_node_gather_end(struct ensio_node_gather *all);

/* The index of a leader among the leaders, and their number. */
void ensio_node_gather_leaders(const struct ensio_node_gather *all, int *rank, int *size);

/* Appends each rank's bytes to the file, in the order of nodes and of ranks in each, those of rank 0 first. Returns the
 * position of this rank's bytes. A failure is noted in `error` of the rank where it occurs. */
uint64_t ensio_node_gather_append(struct ensio_node_gather *all, const void *bytes, uint32_t length);

/* Makes an empty new file: 0, or an errno. */
int ensio_node_gather_make(const char *path);

/* Writes bytes at a position; `last`: syncs the file, because nothing follows. 0, or an errno. */
int ensio_node_gather_write(const struct ensio_node_gather *all, const void *bytes, uint64_t length, uint64_t position,
                            int last);

#endif
