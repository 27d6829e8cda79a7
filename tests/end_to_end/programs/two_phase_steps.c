/* The five steps of a two-phase collective write, by messages of the program itself: all tasks exchange ranges and
 * counts, send offsets and then data to task 0, which writes. Each task writes a log of what each step took by MPI's
 * clock, in ns; a barrier precedes each step. At the end all write once more, by MPI_File_write_at_all. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 1312, MOST_TASKS = 64 };

static char said[4096]; /* written at the end: no other I/O is in the steps */
static size_t said_bytes;
static MPI_Comm all;

static double begin(void)
{
    MPI_Barrier(all);
    return MPI_Wtime();
}

static void end(const char *step, double started, int messages, int bytes)
{
    const long long took_ns = (long long)((MPI_Wtime() - started) * 1e9);
    said_bytes += (size_t)snprintf(said + said_bytes, sizeof said - said_bytes, "%s %lld %d %d\n", step, took_ns,
                                   messages, bytes);
}

int main(int count, char **arguments)
{
    int rank, tasks, ranges[MOST_TASKS], counts[2], places[2][MOST_TASKS];
    static char data[BYTES], gathered[MOST_TASKS * BYTES];
    char path[4096];
    MPI_Request requests[2 * MOST_TASKS + 2];
    MPI_File file;
    MPI_Init(&count, &arguments);
    all = MPI_COMM_WORLD;
    MPI_Comm_rank(all, &rank);
    MPI_Comm_size(all, &tasks);
    memset(data, rank, sizeof data);
    const int offset = rank * BYTES, last = offset + BYTES, one = 1;

    double started = begin();
    MPI_Allgather(&offset, 1, MPI_INT, ranges, 1, MPI_INT, all);
    MPI_Allgather(&last, 1, MPI_INT, ranges, 1, MPI_INT, all);
    end("ranges", started, 2, 8);

    started = begin();
    MPI_Allreduce(&one, &counts[0], 1, MPI_INT, MPI_SUM, all);
    MPI_Allreduce(&offset, &counts[1], 1, MPI_INT, MPI_SUM, all);
    end("counts", started, 2, 8);

    started = begin();
    int under_way = 0;
    for (int i = 0; rank == 0 && i < 2 * tasks; i++)
        MPI_Irecv(&places[i % 2][i / 2], 1, MPI_INT, i / 2, i % 2, all, &requests[under_way++]);
    MPI_Isend(&offset, 1, MPI_INT, 0, 0, all, &requests[under_way++]);
    MPI_Isend(&last, 1, MPI_INT, 0, 1, all, &requests[under_way++]);
    MPI_Waitall(under_way, requests, MPI_STATUSES_IGNORE);
    end("offsets", started, under_way + 1, 4 * under_way);

    started = begin();
    under_way = 0;
    for (int i = 0; rank == 0 && i < tasks; i++)
        MPI_Irecv(gathered + (size_t)i * BYTES, BYTES, MPI_BYTE, i, 2, all, &requests[under_way++]);
    MPI_Isend(data, BYTES, MPI_BYTE, 0, 2, all, &requests[under_way++]);
    MPI_Waitall(under_way, requests, MPI_STATUSES_IGNORE);
    end("data", started, under_way + 1, BYTES * under_way);

    snprintf(path, sizeof path, "%s/data", arguments[1]);
    started = begin();
    MPI_File_open(all, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    if (rank == 0) {
        for (int i = 0; i < tasks; i++)
            if (places[0][i] != i * BYTES || places[1][i] != (i + 1) * BYTES || gathered[i * BYTES] != (char)i)
                MPI_Abort(all, 3);
        MPI_File_write_at(file, 0, gathered, tasks * BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
    }
    end("write", started, 0, 0);
    started = begin();
    MPI_File_write_at_all(file, offset, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
    end("collective", started, 0, 0);
    MPI_Barrier(all);
    MPI_File_close(&file);
    MPI_Finalize();
    snprintf(path, sizeof path, "%s/log.%d", arguments[1], rank);
    FILE *log = fopen(path, "w");
    fputs(said, log);
    fclose(log);
    return 0;
}
