/* Compiled and linked, never run: with a serial HDF5, neither works. */
#include <hdf5.h>
#include <mpi.h>

#ifndef H5_HAVE_PARALLEL
#error this HDF5 is not parallel
#endif

int main(void)
{
    return (int)H5Pset_fapl_mpio(H5Pcreate(H5P_FILE_ACCESS), MPI_COMM_WORLD, MPI_INFO_NULL);
}
