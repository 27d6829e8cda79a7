/* A program for the MPI of other_mpi.c. */
#include <fcntl.h>
#include <unistd.h>

int MPI_Init(int *count, char ***arguments);
int MPI_Barrier(int communicator);
int MPI_Finalize(void);

int main(int count, char **arguments)
{
    MPI_Init(&count, &arguments);
    MPI_Barrier(1);
    int fd = open(arguments[1], O_CREAT | O_WRONLY, 0600);
    if (fd < 0 || write(fd, "x", 1) != 1)
        return 2;
    close(fd);
    MPI_Finalize();
    return 7;
}
