#include "mpi_errors.h"

#include <mpi.h>

int mpi_succeeded(struct call_target *target, int code)
{
    int length;
    if (code == MPI_SUCCESS)
        return 1;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Error_string(code, text, &length);
    snprintf(target->problem, sizeof target->problem, "failed: %s", text);
    return 0;
}
