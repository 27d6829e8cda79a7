/* MPI programs that end in unusual ways: mpi_lives WHAT FOLDER. Each task writes as many bytes as its rank and 10 say.
 */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    int rank;
    char path[4096];
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(path, sizeof path, "%s/rank.%d", arguments[2], rank);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    for (int i = 0; i < 10 + rank; i++)
        if (write(fd, "x", 1) != 1)
            return 1;
    close(fd);
    MPI_Barrier(MPI_COMM_WORLD);
    if (strcmp(arguments[1], "abort") == 0)
        MPI_Abort(MPI_COMM_WORLD, 3);
    else if (strcmp(arguments[1], "profiling") == 0)
        PMPI_Finalize();
    else if (strcmp(arguments[1], "unfinished") == 0)
        _exit(0);
    else
        MPI_Finalize();
    return 0;
}
