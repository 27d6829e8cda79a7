/* Passes lists that are not there to PnetCDF, which refuses the file before it reads them. */
#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>

int main(int count, char **arguments)
{
    void *const nothing = (void *)8;
    int refused = 0, number = -1;
    MPI_Init(&count, &arguments);
    refused += ncmpi_put_varn_int(number, 0, 2, nothing, nothing, nothing) == NC_EBADID;
    refused += ncmpi_mput_vara_int(number, 2, nothing, nothing, nothing, nothing) == NC_EBADID;
    refused += ncmpi_put_vara_int(number, 0, nothing, nothing, nothing) == NC_EBADID;
    refused += ncmpi_put_vard(number, 0, MPI_DATATYPE_NULL, nothing, 1, MPI_INT) == NC_EBADID;
    MPI_Finalize();
    return printf("refused %d\n", refused) != 10;
}
