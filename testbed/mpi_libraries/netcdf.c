/* Compiled and linked, never run: with a serial NetCDF, neither works. */
#include <mpi.h>
#include <netcdf.h>
#include <netcdf_par.h>

int main(void)
{
    int file;
    return nc_create_par("", NC_NETCDF4, MPI_COMM_WORLD, MPI_INFO_NULL, &file);
}
