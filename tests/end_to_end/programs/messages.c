/* Two tasks exchange messages, and write after every fifth of them. The waits are many, and none is about I/O. */
#include <fcntl.h>
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    int rank, rounds = count > 1 ? atoi(arguments[1]) : 1;
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int fd = open(rank ? "data.1" : "data.0", O_CREAT | O_WRONLY, 0600);
    for (int i = 0; i < rounds; i++) {
        int sent = i, got;
        MPI_Request requests[2];
        MPI_Isend(&sent, 1, MPI_INT, !rank, 0, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(&got, 1, MPI_INT, !rank, 0, MPI_COMM_WORLD, &requests[1]);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        /* Sizes and files differ, so that coded events have many templates. */
        if (i % 5 == 0 && write(fd, arguments[0], (size_t)(i / 5 % 3 + 1)) < 0)
            MPI_Abort(MPI_COMM_WORLD, 1);
    }
    close(fd);
    MPI_Finalize();
    return 0;
}
