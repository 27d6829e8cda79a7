/* Compiled and linked, never run. A serial NetCDF has the function, too, but its header says that it is serial. */
#include <mpi.h>
#include <netcdf.h>
#include <netcdf_meta.h>
#include <netcdf_par.h>

#if !NC_HAS_PARALLEL4
#error this NetCDF is not parallel
#endif

int main(void)
{
    int file;
    return nc_create_par("", NC_NETCDF4, MPI_COMM_WORLD, MPI_INFO_NULL, &file);
}
