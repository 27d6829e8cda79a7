/* Sends messages to no one, which costs MPI next to nothing. */
#include <mpi.h>
#include <stdlib.h>

int main(int count, char **arguments)
{
    const int calls = count > 1 ? atoi(arguments[1]) : 1;
    char byte = 0;
    MPI_Init(&count, &arguments);
    for (int i = 0; i < calls; i++)
        MPI_Send(&byte, 1, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
