/* Each task writes its own file; the number of calls identifies the task. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    int rank;
    char path[32];
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(path, sizeof path, "rank.%d", rank);
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    for (int i = 0; i < 10 + rank; i++)
        if (write(fd, path, 6) != 6)
            MPI_Abort(MPI_COMM_WORLD, 1);
    close(fd);
    MPI_Finalize();
    return 0;
}
