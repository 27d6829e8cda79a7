/* Ranks that talk as freely as MPI allows: the first message that rank 0 gets, whatever it is and from any sender, must
 * be the one that rank 1 sends. It ends by PMPI_Finalize if it is told so. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    int rank, tasks, value = 42, sum = 0;
    MPI_Status status = {.MPI_TAG = 7};
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &tasks);
    if (rank == 1)
        MPI_Send(&value, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
    value = -1;
    if (rank == 0)
        MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    if (rank == 0 && (value != 42 || status.MPI_TAG != 7))
        MPI_Abort(MPI_COMM_WORLD, 3);
    FILE *file = fopen("/dev/null", "w");
    fclose(file);
    sleep(count > 2 && atoi(arguments[2]) == rank);
    MPI_Reduce(&rank, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d\n", sum);
    if (count > 1 && arguments[1][0] == 'P')
        return PMPI_Finalize();
    return MPI_Finalize();
}
