/* Every call of the layer of messages, by two tasks, and the waits for what they started. Each task writes a log of
 * what it did: name, bytes. What it received and got is checked, too. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 10

static FILE *say;
static int rank, a[4 * COUNT], b[4 * COUNT], wrong;
static MPI_Comm all;

static void did(const char *name, int bytes)
{
    fprintf(say, "MPI_%s -1 %d 0\n", name, bytes);
}

/* Whether b[0..count) is what the other task has in its a. */
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

typedef int sender(const void *, int, MPI_Datatype, int, int, MPI_Comm);
typedef int starter(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

static void point_to_point(void)
{
    static char room[4096];
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Message message;
    int done = 0, place, ended, which[2];
    MPI_Datatype pair;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Buffer_attach(room, sizeof room);
    sender *const senders[] = {MPI_Send, MPI_Bsend, MPI_Ssend, MPI_Rsend};
    starter *const starters[] = {MPI_Isend, MPI_Ibsend, MPI_Issend, MPI_Irsend};
    static const char *const names[] = {"Send", "Bsend", "Ssend", "Rsend", "Isend", "Ibsend", "Issend", "Irsend"};
    for (int i = 0; i < 8; i++) {
        MPI_Irecv(b, COUNT, pair, !rank, i, all, &requests[0]);
        did("Irecv", 80);
        MPI_Barrier(all); /* a receive is posted before any is sent, as Rsend needs it */
        did("Barrier", 0);
        if (i < 4) {
            senders[i](a, 5, pair, !rank, i, all);
        } else {
            starters[i - 4](a, 5, pair, !rank, i, all, &requests[1]);
        }
        did(names[i], 40);
        if (i < 4) {
            end(&requests[0]);
        } else if (i == 4) {
            MPI_Waitall(2, requests, statuses);
            did("Waitall", 0);
        } else {
            end(&requests[1]);
            end(&requests[0]);
        }
        check_of_other(10);
    }
    memcpy(b, a, sizeof b);
    MPI_Sendrecv_replace(b, COUNT, MPI_INT, !rank, 20, !rank, 20, all, MPI_STATUS_IGNORE);
    did("Sendrecv_replace", 40);
    check_of_other(10);

    MPI_Send_init(a, COUNT, MPI_INT, !rank, 21, all, &requests[0]); /* no message is sent here */
    MPI_Recv_init(b, COUNT, MPI_INT, !rank, 21, all, &requests[1]);
    MPI_Start(&requests[1]);
    did("Start", 0);
    MPI_Start(&requests[0]);
    did("Start", 0);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    did("Waitall", 0);
    check_of_other(10);
    MPI_Startall(2, requests);
    did("Startall", 0);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    did("Waitall", 0);
    check_of_other(10);
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);

    /* Only the Test that completes a message is recorded. */
    MPI_Irecv(b, COUNT, MPI_INT, !rank, 22, all, &requests[0]);
    did("Irecv", 40);
    MPI_Test(&requests[0], &done, MPI_STATUS_IGNORE);
    MPI_Testany(1, requests, &place, &done, MPI_STATUS_IGNORE);
    MPI_Testall(1, requests, &done, MPI_STATUSES_IGNORE);
    MPI_Testsome(1, requests, &ended, which, MPI_STATUSES_IGNORE);
    MPI_Barrier(all);
    did("Barrier", 0);
    MPI_Send(a, COUNT, MPI_INT, !rank, 22, all);
    did("Send", 40);
    for (done = 0; !done;)
        MPI_Test(&requests[0], &done, MPI_STATUS_IGNORE);
    did("Test", 0);
    check_of_other(10);
    for (int i = 0; i < 3; i++) {
        MPI_Irecv(b, COUNT, MPI_INT, !rank, 23, all, &requests[0]);
        did("Irecv", 40);
        MPI_Send(a, COUNT, MPI_INT, !rank, 23, all);
        did("Send", 40);
        for (done = 0, ended = 0; !done && ended <= 0;) {
            if (i == 0)
                MPI_Testany(1, requests, &place, &done, MPI_STATUS_IGNORE);
            else if (i == 1)
                MPI_Testall(1, requests, &done, MPI_STATUSES_IGNORE);
            else
                MPI_Testsome(1, requests, &ended, which, MPI_STATUSES_IGNORE);
        }
        did(i == 0 ? "Testany" : i == 1 ? "Testall" : "Testsome", 0);
        check_of_other(10);
    }

    for (int i = 0; i < 2; i++) {
        MPI_Isend(a, COUNT, MPI_INT, !rank, 24, all, &requests[0]);
        did("Isend", 40);
        MPI_Mprobe(!rank, 24, all, &message, MPI_STATUS_IGNORE);
        did("Mprobe", 0);
        if (i == 0) {
            MPI_Mrecv(b, 2 * COUNT, MPI_INT, &message, MPI_STATUS_IGNORE);
            did("Mrecv", 80);
        } else {
            MPI_Imrecv(b, 2 * COUNT, MPI_INT, &message, &requests[1]);
            did("Imrecv", 80);
            end(&requests[1]);
        }
        end(&requests[0]);
        check_of_other(10);
    }
    /* Only the probe that finds a message is recorded. */
    for (int i = 0; i < 2; i++) {
        int found = 0;
        MPI_Iprobe(!rank, 25, all, &found, MPI_STATUS_IGNORE);
        MPI_Improbe(!rank, 25, all, &found, &message, MPI_STATUS_IGNORE);
        wrong += found;
        MPI_Barrier(all);
        did("Barrier", 0);
        MPI_Isend(a, COUNT, MPI_INT, !rank, 25, all, &requests[0]);
        did("Isend", 40);
        while (!found) {
            if (i == 0)
                MPI_Iprobe(!rank, 25, all, &found, MPI_STATUS_IGNORE);
            else
                MPI_Improbe(!rank, 25, all, &found, &message, MPI_STATUS_IGNORE);
        }
        did(i == 0 ? "Iprobe" : "Improbe", 0);
        if (i == 0) {
            MPI_Recv(b, COUNT, MPI_INT, !rank, 25, all, MPI_STATUS_IGNORE);
            did("Recv", 40);
        } else {
            MPI_Mrecv(b, COUNT, MPI_INT, &message, MPI_STATUS_IGNORE);
            did("Mrecv", 40);
        }
        end(&requests[0]);
        check_of_other(10);
        MPI_Barrier(all); /* the message is gone before the next is sent */
        did("Barrier", 0);
    }
    int size;
    void *buffer;
    MPI_Buffer_detach(&buffer, &size);
    MPI_Type_free(&pair);
}

static void collective(void)
{
    int counts[2] = {COUNT, COUNT}, places[2] = {0, COUNT}, offsets[2] = {0, 4 * COUNT};
    MPI_Datatype types[2] = {MPI_INT, MPI_INT};
    MPI_Request request;
#define ENDED(name, bytes) \
    did(name, bytes); \
    end(&request)
    MPI_Ibarrier(all, &request);
    ENDED("Ibarrier", 0);
    MPI_Ibcast(b, COUNT, MPI_INT, 0, all, &request);
    ENDED("Ibcast", 40);
    MPI_Ireduce(a, b, COUNT, MPI_INT, MPI_SUM, 0, all, &request);
    ENDED("Ireduce", 40);
    MPI_Iallreduce(a, b, COUNT, MPI_INT, MPI_SUM, all, &request);
    ENDED("Iallreduce", 40);
    for (int i = 0; i < COUNT; i++)
        wrong += b[i] != 1000 + 2 * i;
    MPI_Igather(a, COUNT, MPI_INT, b, COUNT, MPI_INT, 0, all, &request);
    ENDED("Igather", 40);
    MPI_Igatherv(a, COUNT, MPI_INT, b, counts, places, MPI_INT, 0, all, &request);
    ENDED("Igatherv", 40);
    MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, COUNT, MPI_INT, all, &request);
    ENDED("Iallgather", 0);
    MPI_Iallgatherv(a, COUNT, MPI_INT, b, counts, places, MPI_INT, all, &request);
    ENDED("Iallgatherv", 40);
    MPI_Ialltoall(a, COUNT, MPI_INT, b, COUNT, MPI_INT, all, &request);
    ENDED("Ialltoall", 0);
    MPI_Ialltoallv(a, counts, places, MPI_INT, b, counts, places, MPI_INT, all, &request);
    ENDED("Ialltoallv", 0);
    MPI_Ialltoallw(a, counts, offsets, types, b, counts, offsets, types, all, &request);
    ENDED("Ialltoallw", 0);
    MPI_Iscatter(a, COUNT, MPI_INT, b, COUNT, MPI_INT, 0, all, &request);
    ENDED("Iscatter", 40);
    MPI_Iscatterv(a, counts, places, MPI_INT, b, COUNT, MPI_INT, 0, all, &request);
    ENDED("Iscatterv", 40);
    MPI_Iscan(a, b, COUNT, MPI_INT, MPI_SUM, all, &request);
    ENDED("Iscan", 40);
    MPI_Iexscan(a, b, COUNT, MPI_INT, MPI_SUM, all, &request);
    ENDED("Iexscan", 40);
    MPI_Ireduce_scatter(a, b, counts, MPI_INT, MPI_SUM, all, &request);
    ENDED("Ireduce_scatter", 0);
    MPI_Ireduce_scatter_block(a, b, COUNT, MPI_INT, MPI_SUM, all, &request);
    ENDED("Ireduce_scatter_block", 40);
}

/* Each task is the only neighbour of the other. */
static void neighbours(void)
{
    const int peer = !rank, counts[1] = {COUNT}, places[1] = {0};
    const MPI_Aint offsets[1] = {0};
    const MPI_Datatype types[1] = {MPI_INT};
    MPI_Comm graph;
    MPI_Request request;
    MPI_Dist_graph_create_adjacent(all, 1, &peer, MPI_UNWEIGHTED, 1, &peer, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
    MPI_Neighbor_allgather(a, COUNT, MPI_INT, b, COUNT, MPI_INT, graph);
    did("Neighbor_allgather", 40);
    check_of_other(COUNT);
    MPI_Neighbor_allgatherv(a, COUNT, MPI_INT, b, counts, places, MPI_INT, graph);
    did("Neighbor_allgatherv", 40);
    check_of_other(COUNT);
    MPI_Neighbor_alltoall(a, COUNT, MPI_INT, b, COUNT, MPI_INT, graph);
    did("Neighbor_alltoall", 0);
    check_of_other(COUNT);
    MPI_Neighbor_alltoallv(a, counts, places, MPI_INT, b, counts, places, MPI_INT, graph);
    did("Neighbor_alltoallv", 0);
    check_of_other(COUNT);
    MPI_Neighbor_alltoallw(a, counts, offsets, types, b, counts, offsets, types, graph);
    did("Neighbor_alltoallw", 0);
    check_of_other(COUNT);
    MPI_Ineighbor_allgather(a, COUNT, MPI_INT, b, COUNT, MPI_INT, graph, &request);
    ENDED("Ineighbor_allgather", 40);
    check_of_other(COUNT);
    MPI_Ineighbor_allgatherv(a, COUNT, MPI_INT, b, counts, places, MPI_INT, graph, &request);
    ENDED("Ineighbor_allgatherv", 40);
    check_of_other(COUNT);
    MPI_Ineighbor_alltoall(a, COUNT, MPI_INT, b, COUNT, MPI_INT, graph, &request);
    ENDED("Ineighbor_alltoall", 0);
    check_of_other(COUNT);
    MPI_Ineighbor_alltoallv(a, counts, places, MPI_INT, b, counts, places, MPI_INT, graph, &request);
    ENDED("Ineighbor_alltoallv", 0);
    check_of_other(COUNT);
    MPI_Ineighbor_alltoallw(a, counts, offsets, types, b, counts, offsets, types, graph, &request);
    ENDED("Ineighbor_alltoallw", 0);
    check_of_other(COUNT);
    MPI_Comm_free(&graph);
}

static void fence(MPI_Win window)
{
    MPI_Win_fence(0, window);
    did("Win_fence", 0);
}

static void one_sided(void)
{
    static int memory[4 * COUNT];
    int *own, one = 1, old = -1;
    MPI_Win window;
    MPI_Request request;
    MPI_Group both, other;
    const int peer = !rank;
    MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, all, &window);
    did("Win_create", 0);
    fence(window);
    MPI_Put(a, COUNT, MPI_INT, !rank, 0, COUNT, MPI_INT, window);
    did("Put", 40);
    fence(window);
    memcpy(b, memory, sizeof memory);
    check_of_other(COUNT);
    MPI_Get(b, COUNT, MPI_INT, !rank, 0, COUNT, MPI_INT, window);
    did("Get", 40);
    fence(window);
    wrong += b[1] != a[1];
    MPI_Accumulate(a, COUNT, MPI_INT, !rank, COUNT, COUNT, MPI_INT, MPI_SUM, window);
    did("Accumulate", 40);
    fence(window);
    MPI_Get_accumulate(a, COUNT, MPI_INT, b, COUNT, MPI_INT, !rank, 2 * COUNT, COUNT, MPI_INT, MPI_SUM, window);
    did("Get_accumulate", 40);
    fence(window);

    MPI_Win_lock(MPI_LOCK_SHARED, !rank, 0, window);
    did("Win_lock", 0);
    MPI_Fetch_and_op(&one, &old, MPI_INT, !rank, 3 * COUNT, MPI_SUM, window);
    did("Fetch_and_op", 4);
    MPI_Win_flush(!rank, window);
    did("Win_flush", 0);
    wrong += old != 0;
    MPI_Compare_and_swap(&one, &one, &old, MPI_INT, !rank, 3 * COUNT, window);
    did("Compare_and_swap", 4);
    MPI_Win_flush_local(!rank, window);
    did("Win_flush_local", 0);
    MPI_Win_unlock(!rank, window);
    did("Win_unlock", 0);
    wrong += old != 1;
    MPI_Win_lock_all(0, window);
    did("Win_lock_all", 0);
    MPI_Rput(a, COUNT, MPI_INT, !rank, 0, COUNT, MPI_INT, window, &request);
    ENDED("Rput", 40);
    MPI_Rget(b, COUNT, MPI_INT, !rank, 0, COUNT, MPI_INT, window, &request);
    ENDED("Rget", 40);
    MPI_Raccumulate(a, COUNT, MPI_INT, !rank, 0, COUNT, MPI_INT, MPI_SUM, window, &request);
    ENDED("Raccumulate", 40);
    MPI_Rget_accumulate(a, COUNT, MPI_INT, b, COUNT, MPI_INT, !rank, 0, COUNT, MPI_INT, MPI_SUM, window, &request);
    ENDED("Rget_accumulate", 40);
    MPI_Win_flush_all(window);
    did("Win_flush_all", 0);
    MPI_Win_flush_local_all(window);
    did("Win_flush_local_all", 0);
    MPI_Win_sync(window);
    did("Win_sync", 0);
    MPI_Win_unlock_all(window);
    did("Win_unlock_all", 0);

    MPI_Comm_group(all, &both);
    MPI_Group_incl(both, 1, &peer, &other);
    MPI_Win_post(other, 0, window);
    did("Win_post", 0);
    MPI_Win_start(other, 0, window);
    did("Win_start", 0);
    MPI_Win_complete(window);
    did("Win_complete", 0);
    MPI_Win_wait(window);
    did("Win_wait", 0);
    MPI_Group_free(&other);
    MPI_Group_free(&both);
    MPI_Win_free(&window);
    did("Win_free", 0);
    MPI_Win_allocate(64, 4, MPI_INFO_NULL, all, &own, &window);
    did("Win_allocate", 0);
    MPI_Win_free(&window);
    did("Win_free", 0);
    MPI_Win_allocate_shared(64, 4, MPI_INFO_NULL, all, &own, &window);
    did("Win_allocate_shared", 0);
    MPI_Win_free(&window);
    did("Win_free", 0);
    MPI_Win_create_dynamic(MPI_INFO_NULL, all, &window);
    did("Win_create_dynamic", 0);
    MPI_Win_free(&window);
    did("Win_free", 0);
}

int main(int count, char **arguments)
{
    char log[4096];
    MPI_Comm alike;
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
    neighbours();
    one_sided();
    MPI_Comm_split(all, 0, rank, &alike);
    did("Comm_split", 0);
    MPI_Comm_free(&alike);
    did("Finalize", 0);
    fclose(say);
    MPI_Finalize();
    return wrong != 0;
}
