/* node_gather.h: one file that all ranks of MPI_COMM_WORLD write together. The ranks of a node hand what they have to
 * one of them, its leader, and only leaders write: a few large writes take the place of many small ones. */
#ifndef ENSIO_LAYERS_MPI_NODE_GATHER_H
#define ENSIO_LAYERS_MPI_NODE_GATHER_H

#include "abi.h"

struct ensio_node_gather {
    const struct ensio_mpi *mpi;
    uintptr_t node, leaders; /* communicators; `leaders` only in a leader */
    int rank, tasks;         /* in MPI_COMM_WORLD */
    int node_rank, node_tasks;
    const char *path; /* of the file; NULL: there is none. Only in a leader */
    uint64_t end;     /* of the file as it has grown; only in a leader */
    int error;        /* the first that this rank met, as an errno */
    int64_t *numbers; /* room for some numbers of each rank of the node; only in a leader */
};

/* The largest of all ranks' numbers, to all of them. */
int64_t ensio_node_gather_max(struct ensio_node_gather *all, int64_t number);

/* Begins; 0: the communicators could not be made in every rank, and nothing more is to be called. */
int ensio_node_gather_begin(struct ensio_node_gather *all, const struct ensio_mpi *mpi);
void ensio_node_gather_end(struct ensio_node_gather *all);

/* The number of a leader among the leaders, and how many they are. */
void ensio_node_gather_leaders(const struct ensio_node_gather *all, int *rank, int *size);

/* Puts what each rank has into the file, behind what is there, in the order of the nodes and of the ranks in each;
 * those of rank 0 come first. Returns where this rank's bytes begin. What fails is noted in `error` of the rank where
 * it does. */
uint64_t ensio_node_gather_append(struct ensio_node_gather *all, const void *bytes, uint32_t length);

/* Makes an empty file that was not there before: 0, or an errno. */
int ensio_node_gather_make(const char *path);

/* Writes all of this at a place in the file; `last`: nothing follows, and the disk has it all then. 0, or an errno. */
int ensio_node_gather_write(const struct ensio_node_gather *all, const void *bytes, uint64_t length, uint64_t position,
                            int last);

#endif
