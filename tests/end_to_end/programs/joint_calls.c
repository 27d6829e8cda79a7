/* Ranks that do different things, then end MPI: what they add up to is one summary.
 *
 *     joint_calls FOLDER CALLS ENDING [WORD]
 *
 * Rank 0, 4 ... each write their own file, in sizes that grow; 1, 5 ... seek in and read a file that all share; 2, 6
 * ... make no call at all; 3, 7 ... use streams. ENDING: `MPI_Finalize` or `PMPI_Finalize`. With the word `same` all
 * ranks do as rank 0 does. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char block[1 << 16], path[4096];

static void write_own(int rank, int calls)
{
    snprintf(path + strlen(path), 64, "/own.%d", rank);
    const int fd = open(path, O_CREAT | O_WRONLY, 0600);
    for (int i = 0; i < calls; i++)
        if (write(fd, block, (size_t)(1 << i % 16)) < 0)
            abort();
    close(fd);
}

static void read_shared(int calls)
{
    strcat(path, "/shared");
    const int fd = open(path, O_CREAT | O_RDWR, 0600);
    for (int i = 0; i < calls; i++) {
        lseek(fd, i, SEEK_SET);
        read(fd, block, 100);
    }
    close(fd);
}

static void use_streams(int rank, int calls)
{
    snprintf(path + strlen(path), 64, "/stream.%d", rank);
    FILE *file = fopen(path, "w");
    for (int i = 0; i < calls; i++)
        fprintf(file, "%d\n", i);
    fclose(file);
    open("/no/such/file", O_RDONLY);
}

int main(int count, char **arguments)
{
    int rank;
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(path, sizeof path / 2, "%s", arguments[1]);
    const int calls = atoi(arguments[2]), kind = arguments[4] ? 0 : rank % 4;
    if (kind == 0)
        write_own(rank, calls);
    else if (kind == 1)
        read_shared(calls);
    else if (kind == 3)
        use_streams(rank, calls);
    MPI_Barrier(MPI_COMM_WORLD);
    if (strcmp(arguments[3], "PMPI_Finalize") == 0)
        PMPI_Finalize();
    else
        MPI_Finalize();
    puts("done");
    return 0;
}
