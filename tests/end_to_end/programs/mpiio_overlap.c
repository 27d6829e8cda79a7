/* Every task overlaps writes with other work: mpiio_overlap FILE WAY. Each prints the seconds that it measured in the
 * calls that post requests, in those that wait for them, and in the work between; rank 0 first.
 *
 *   wait      MPI_File_iwrite_at, work, MPI_Wait
 *   several   four requests at a time, work, MPI_Waitall
 *   mixed     a request of I/O among messages, work, MPI_Waitsome until all are complete
 *   messages  only messages, MPI_Waitall
 *   split     MPI_File_write_at_all_begin, work, MPI_File_write_at_all_end
 *   free      MPI_File_iwrite_at, MPI_Request_free
 *   blocking  MPI_File_write_at_all of many pieces, which some MPIs write by overlapping requests */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK (1 << 18)
#define STEPS 8
#define WORK_S 0.02

static MPI_File file;
static char *data;
static int rank, tasks;
static double posting, waiting, working;

static MPI_Offset place(int step)
{
    return (MPI_Offset)(step * tasks + rank) * BLOCK;
}

static void work(void)
{
    const double start = MPI_Wtime();
    int flag;
    while (MPI_Wtime() - start < WORK_S)
        MPI_Iprobe(MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    working += MPI_Wtime() - start;
}

#define TIMED(sum, call) \
    do { \
        const double start = MPI_Wtime(); \
        if ((call) != MPI_SUCCESS) \
            MPI_Abort(MPI_COMM_WORLD, 3); \
        (sum) += MPI_Wtime() - start; \
    } while (0)

static void post(int step, MPI_Request *request)
{
    TIMED(posting, MPI_File_iwrite_at(file, place(step), data, BLOCK, MPI_BYTE, request));
}

static void messages(MPI_Request *requests)
{
    static int sent, received;
    const int next = (rank + 1) % tasks, before = (rank + tasks - 1) % tasks;
    sent = rank;
    MPI_Irecv(&received, 1, MPI_INT, before, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(&sent, 1, MPI_INT, next, 1, MPI_COMM_WORLD, &requests[1]);
}

static void mixed(int step)
{
    MPI_Request requests[3];
    int ended = 0, more, places[3];
    messages(requests);
    post(step, &requests[2]);
    work();
    while (ended < 3) {
        TIMED(waiting, MPI_Waitsome(3, requests, &more, places, MPI_STATUSES_IGNORE));
        ended += more;
    }
}

static void blocking(int step)
{
    MPI_Datatype pieces;
    MPI_Type_vector(BLOCK / 8, 4, 8, MPI_BYTE, &pieces);
    MPI_Type_commit(&pieces);
    MPI_File_set_view(file, place(step), MPI_BYTE, pieces, "native", MPI_INFO_NULL);
    TIMED(posting, MPI_File_write_at_all(file, 0, data, BLOCK / 2, MPI_BYTE, MPI_STATUS_IGNORE));
    MPI_Type_free(&pieces);
}

static void one(const char *way, int step)
{
    MPI_Request requests[4];
    MPI_Status status;
    if (strcmp(way, "wait") == 0) {
        post(step, requests);
        work();
        TIMED(waiting, MPI_Wait(requests, &status));
    } else if (strcmp(way, "several") == 0) {
        for (int i = 0; i < 4; i++)
            post(4 * step + i, &requests[i]);
        work();
        TIMED(waiting, MPI_Waitall(4, requests, MPI_STATUSES_IGNORE));
    } else if (strcmp(way, "mixed") == 0) {
        mixed(step);
    } else if (strcmp(way, "messages") == 0) {
        messages(requests);
        TIMED(waiting, MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    } else if (strcmp(way, "split") == 0) {
        TIMED(posting, MPI_File_write_at_all_begin(file, place(step), data, BLOCK, MPI_BYTE));
        work();
        TIMED(waiting, MPI_File_write_at_all_end(file, data, &status));
    } else if (strcmp(way, "free") == 0) {
        post(step, requests);
        MPI_Request_free(requests);
        work();
    } else {
        blocking(step);
    }
}

int main(int count, char **arguments)
{
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &tasks);
    data = calloc(1, BLOCK);
    MPI_File_open(MPI_COMM_WORLD, arguments[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    for (int step = 0; step < STEPS; step++)
        one(arguments[2], step);
    MPI_File_close(&file);
    double mine[3] = {posting, waiting, working}, all[3 * 64];
    MPI_Gather(mine, 3, MPI_DOUBLE, all, 3, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < tasks; i++)
        printf("%.9f %.9f %.9f\n", all[3 * i], all[3 * i + 1], all[3 * i + 2]);
    MPI_Finalize();
    return 0;
}
