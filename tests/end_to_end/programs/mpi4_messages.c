/* Messages of MPI 4 by two tasks: large counts and parts. Each task writes a log as mpimsg_calls.c does. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#define COUNT 10

static FILE *say;
static int rank, a[4 * COUNT], b[4 * COUNT], wrong;
static MPI_Comm all;

static void did(const char *name, long long bytes)
{
    fprintf(say, "MPI_%s -1 %lld 0\n", name, bytes);
}

static void check_of_other(int count)
{
    for (int i = 0; i < count; i++)
        wrong += b[i] != 1000 * !rank + i;
    memset(b, 0, sizeof b);
}

static void end(MPI_Request *request)
{
    MPI_Wait(request, MPI_STATUS_IGNORE);
    did("Wait", 0);
}

#define ENDED(name, bytes) \
    did(name, bytes); \
    end(&request)

static void point_to_point(void)
{
    MPI_Request request;
    MPI_Message message;
    const MPI_Count many = 3000000000; /* more than an int has room for; without a peer, no message is sent */
    MPI_Send_c(a, many, MPI_BYTE, MPI_PROC_NULL, 0, all);
    did("Send", many);
    MPI_Irecv_c(b, many, MPI_INT, MPI_PROC_NULL, 0, all, &request);
    ENDED("Irecv", 4 * many);

    MPI_Isend_c(a, COUNT, MPI_INT, !rank, 1, all, &request);
    did("Isend", 40);
    MPI_Recv_c(b, COUNT, MPI_INT, !rank, 1, all, MPI_STATUS_IGNORE);
    did("Recv", 40);
    end(&request);
    check_of_other(COUNT);
    MPI_Sendrecv_c(a, COUNT, MPI_INT, !rank, 2, b, COUNT, MPI_INT, !rank, 2, all, MPI_STATUS_IGNORE);
    did("Sendrecv", 80);
    check_of_other(COUNT);
    MPI_Isendrecv(a, COUNT, MPI_INT, !rank, 5, b, COUNT, MPI_INT, !rank, 5, all, &request);
    ENDED("Isendrecv", 80);
    check_of_other(COUNT);
    memcpy(b, a, sizeof b);
    MPI_Isendrecv_replace_c(b, COUNT, MPI_INT, !rank, 6, !rank, 6, all, &request);
    ENDED("Isendrecv_replace", 40);
    check_of_other(COUNT);
    memcpy(b, a, sizeof b);
    MPI_Sendrecv_replace_c(b, COUNT, MPI_INT, !rank, 3, !rank, 3, all, MPI_STATUS_IGNORE);
    did("Sendrecv_replace", 40);
    check_of_other(COUNT);
    MPI_Isend_c(a, COUNT, MPI_INT, !rank, 4, all, &request);
    did("Isend", 40);
    MPI_Mprobe(!rank, 4, all, &message, MPI_STATUS_IGNORE);
    did("Mprobe", 0);
    MPI_Mrecv_c(b, COUNT, MPI_INT, &message, MPI_STATUS_IGNORE);
    did("Mrecv", 40);
    end(&request);
    check_of_other(COUNT);
}

static void collective(void)
{
    const MPI_Count counts[2] = {COUNT, COUNT};
    const MPI_Aint places[2] = {0, COUNT};
    const int peer = !rank;
    MPI_Request request;
    MPI_Comm graph;
    MPI_Bcast_c(b, COUNT, MPI_INT, 0, all);
    did("Bcast", 40);
    MPI_Allreduce_c(a, b, COUNT, MPI_INT, MPI_SUM, all);
    did("Allreduce", 40);
    for (int i = 0; i < COUNT; i++)
        wrong += b[i] != 1000 + 2 * i;
    MPI_Allgather_c(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, COUNT, MPI_INT, all);
    did("Allgather", 0);
    MPI_Gatherv_c(a, COUNT, MPI_INT, b, counts, places, MPI_INT, 0, all);
    did("Gatherv", 40);
    MPI_Alltoallv_c(a, counts, places, MPI_INT, b, counts, places, MPI_INT, all);
    did("Alltoallv", 0);
    MPI_Reduce_scatter_block_c(a, b, COUNT, MPI_INT, MPI_SUM, all);
    did("Reduce_scatter_block", 40);
    MPI_Iallreduce_c(a, b, COUNT, MPI_INT, MPI_SUM, all, &request);
    ENDED("Iallreduce", 40);
    MPI_Iscatterv_c(a, counts, places, MPI_INT, b, COUNT, MPI_INT, 0, all, &request);
    ENDED("Iscatterv", 40);
    MPI_Dist_graph_create_adjacent(all, 1, &peer, MPI_UNWEIGHTED, 1, &peer, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
    MPI_Neighbor_allgather_c(a, COUNT, MPI_INT, b, COUNT, MPI_INT, graph);
    did("Neighbor_allgather", 40);
    check_of_other(COUNT);
    MPI_Ineighbor_alltoallv_c(a, counts, places, MPI_INT, b, counts, places, MPI_INT, graph, &request);
    ENDED("Ineighbor_alltoallv", 0);
    check_of_other(COUNT);
    MPI_Comm_free(&graph);
}

static void one_sided(void)
{
    int *memory;
    MPI_Win window;
    MPI_Win_allocate_c(4096, sizeof(int), MPI_INFO_NULL, all, &memory, &window);
    did("Win_allocate", 0);
    MPI_Win_fence(0, window);
    did("Win_fence", 0);
    MPI_Put_c(a, COUNT, MPI_INT, !rank, 0, COUNT, MPI_INT, window);
    did("Put", 40);
    MPI_Win_fence(0, window);
    did("Win_fence", 0);
    memcpy(b, memory, 4 * COUNT);
    check_of_other(COUNT);
    MPI_Win_free(&window);
    did("Win_free", 0);
}

/* Task 0 sends four messages of two parts each; task 1 asks for the parts. */
static void parts(void)
{
    int both[2] = {0, 1};
    MPI_Request request;
    if (rank == 0)
        MPI_Psend_init(a, 2, COUNT / 2, MPI_INT, 1, 9, all, MPI_INFO_NULL, &request);
    else
        MPI_Precv_init(b, 2, COUNT / 2, MPI_INT, 0, 9, all, MPI_INFO_NULL, &request);
    for (int i = 0; i < 3; i++) {
        MPI_Start(&request);
        did("Start", 0);
        if (rank == 1) {
            int there = 0;
            while (!there)
                MPI_Parrived(request, 1, &there);
            did("Parrived", 0);
        } else if (i == 0) {
            MPI_Pready(1, request);
            did("Pready", 0);
            MPI_Pready(0, request);
            did("Pready", 0);
        } else if (i == 1) {
            MPI_Pready_range(0, 1, request);
            did("Pready_range", 0);
        } else {
            MPI_Pready_list(2, both, request);
            did("Pready_list", 0);
        }
        end(&request);
        if (rank == 1)
            check_of_other(COUNT);
    }
    MPI_Request_free(&request);
}

int main(int count, char **arguments)
{
    char log[4096];
    all = MPI_COMM_WORLD;
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(all, &rank);
    snprintf(log, sizeof log, "%s/log.%d", arguments[1], rank);
    say = fopen(log, "w");
    did("Init", 0);
    for (int i = 0; i < 4 * COUNT; i++)
        a[i] = 1000 * rank + i;
    point_to_point();
    collective();
    one_sided();
    parts();
    did("Finalize", 0);
    fclose(say);
    MPI_Finalize();
    return wrong != 0;
}
