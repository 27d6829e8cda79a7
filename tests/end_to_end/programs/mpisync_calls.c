/* Every call in which tasks wait for each other, by two tasks. Each says on its own log what it did: name, bytes. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT 10

static FILE *say;

static void did(const char *name, int bytes)
{
    fprintf(say, "MPI_%s -1 %d 0\n", name, bytes);
}

int main(int count, char **arguments)
{
    int rank, tasks, provided, a[4 * COUNT], b[4 * COUNT], counts[2] = {COUNT, COUNT}, places[2] = {0, COUNT};
    int offsets[2] = {0, 0}, place, ended, which[2];
    char log[4096];
    MPI_Datatype types[2] = {MPI_INT, MPI_INT}, pair;
    MPI_Request requests[2];
    MPI_Status status;
    MPI_Comm all = MPI_COMM_WORLD;
    MPI_Init_thread(&count, &arguments, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(all, &rank);
    MPI_Comm_size(all, &tasks);
    snprintf(log, sizeof log, "%s/log.%d", arguments[1], rank);
    say = fopen(log, "w");
    did("Init_thread", 0);
    for (int i = 0; i < 4 * COUNT; i++)
        a[i] = b[i] = i;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);

    MPI_Barrier(all);
    did("Barrier", 0);
    MPI_Bcast(a, 3, pair, 0, all);
    did("Bcast", 24);
    MPI_Reduce(a, b, COUNT, MPI_INT, MPI_SUM, 0, all);
    did("Reduce", 40);
    MPI_Allreduce(MPI_IN_PLACE, b, COUNT, MPI_INT, MPI_SUM, all);
    did("Allreduce", 40);
    MPI_Gather(a, COUNT, MPI_INT, b, COUNT, MPI_INT, 0, all);
    did("Gather", 40);
    MPI_Gatherv(a, COUNT, MPI_INT, b, counts, places, MPI_INT, 0, all);
    did("Gatherv", 40);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, COUNT, MPI_INT, all);
    did("Allgather", 0);
    MPI_Allgatherv(a, COUNT, MPI_INT, b, counts, places, MPI_INT, all);
    did("Allgatherv", 40);
    MPI_Alltoall(a, COUNT, MPI_INT, b, COUNT, MPI_INT, all);
    did("Alltoall", 0);
    MPI_Alltoallv(a, counts, places, MPI_INT, b, counts, places, MPI_INT, all);
    did("Alltoallv", 0);
    MPI_Alltoallw(a, counts, offsets, types, b, counts, offsets, types, all);
    did("Alltoallw", 0);
    MPI_Scatter(a, COUNT, MPI_INT, b, COUNT, MPI_INT, 0, all);
    did("Scatter", 40);
    MPI_Scatterv(a, counts, places, MPI_INT, b, COUNT, MPI_INT, 0, all);
    did("Scatterv", 40);
    MPI_Scan(a, b, COUNT, MPI_INT, MPI_SUM, all);
    did("Scan", 40);
    MPI_Exscan(a, b, COUNT, MPI_INT, MPI_SUM, all);
    did("Exscan", 40);
    MPI_Reduce_scatter(a, b, counts, MPI_INT, MPI_SUM, all);
    did("Reduce_scatter", 0);
    MPI_Reduce_scatter_block(a, b, COUNT, MPI_INT, MPI_SUM, all);
    did("Reduce_scatter_block", 40);
    MPI_Sendrecv(a, COUNT, MPI_INT, 1 - rank, 1, b, 2 * COUNT, MPI_INT, 1 - rank, 1, all, &status);
    did("Sendrecv", 120);
    MPI_Send(a, COUNT, MPI_INT, 1 - rank, 2, all);
    MPI_Probe(1 - rank, 2, all, MPI_STATUS_IGNORE);
    did("Probe", 0);
    MPI_Recv(b, COUNT, MPI_INT, 1 - rank, 2, all, &status);
    did("Recv", 40);

    /* A wait for what is not I/O is recorded too; a Test that finds none is not recorded. */
    MPI_Ibarrier(all, &requests[0]);
    MPI_Wait(&requests[0], &status);
    did("Wait", 0);
    MPI_Ibarrier(all, &requests[0]);
    for (int done = 0; !done;)
        MPI_Test(&requests[0], &done, MPI_STATUS_IGNORE);
    MPI_Ibarrier(all, &requests[0]);
    MPI_Ibarrier(all, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    did("Waitall", 0);
    MPI_Ibarrier(all, &requests[0]);
    MPI_Waitany(1, requests, &place, &status);
    did("Waitany", 0);
    MPI_Ibarrier(all, &requests[0]);
    MPI_Waitsome(1, requests, &ended, which, MPI_STATUSES_IGNORE);
    did("Waitsome", 0);
    MPI_Type_free(&pair);
    did("Finalize", 0);
    fclose(say);
    MPI_Finalize();
    return 0;
}
