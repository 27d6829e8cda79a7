/* An MPI of a third kind, in so far as mpi_on_another.c calls it: handles are small numbers, and a call with another
 * one ends the program. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(int communicator)
{
    if (communicator != 1)
        abort();
}

int PMPI_Initialized(int *answer)
{
    *answer = 1;
    return 0;
}

int PMPI_Get_library_version(char *text, int *length)
{
    *length = (int)strlen(strcpy(text, "Third MPI 1.0"));
    return 0;
}

int PMPI_Comm_rank(int communicator, int *rank)
{
    check(communicator);
    *rank = 0;
    return 0;
}

int MPI_Init(int *count, char ***arguments)
{
    return 0;
}

int MPI_Barrier(int communicator)
{
    check(communicator);
    return 0;
}

int MPI_Finalize(void)
{
    return 0;
}
