/* Writes and reads a netCDF-4 file by all tasks of an MPI program. Task 0 says on standard output what it did: call,
 * requested, moved, errno. netcdf_parallel FILE */
#include <mpi.h>
#include <netcdf.h>
#include <netcdf_par.h>
#include <stdio.h>

#define ROWS 50
#define COLUMNS 100

static int rank;

#define DO(name, bytes, call) \
    do { \
        const int status = (call); \
        if (status != NC_NOERR) { \
            fprintf(stderr, "%s: %s\n", #call, nc_strerror(status)); \
            MPI_Abort(MPI_COMM_WORLD, 1); \
        } \
        if (rank == 0) \
            printf("%s %d %d 0 -1\n", #name, (bytes), (bytes)); \
    } while (0)

int main(int count, char **arguments)
{
    static double field[ROWS * COLUMNS], back[ROWS * COLUMNS];
    int tasks, file, dimensions[2], variable;
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &tasks);
    const size_t first[2] = {(size_t)rank * ROWS, 0}, mine[2] = {ROWS, COLUMNS};
    for (int i = 0; i < ROWS * COLUMNS; i++)
        field[i] = rank * 1e6 + i;
    DO(nc_create_par, 0, nc_create_par(arguments[1], NC_CLOBBER | NC_NETCDF4, MPI_COMM_WORLD, MPI_INFO_NULL, &file));
    DO(nc_def_dim, 0, nc_def_dim(file, "row", (size_t)tasks * ROWS, &dimensions[0]));
    DO(nc_def_dim, 0, nc_def_dim(file, "column", COLUMNS, &dimensions[1]));
    DO(nc_def_var, 0, nc_def_var(file, "field", NC_DOUBLE, 2, dimensions, &variable));
    DO(nc_enddef, 0, nc_enddef(file));
    DO(nc_var_par_access, 0, nc_var_par_access(file, variable, NC_COLLECTIVE));
    DO(nc_put_vara, 8 * ROWS * COLUMNS, nc_put_vara_double(file, variable, first, mine, field));
    DO(nc_close, 0, nc_close(file));
    DO(nc_open_par, 0, nc_open_par(arguments[1], NC_NOWRITE, MPI_COMM_WORLD, MPI_INFO_NULL, &file));
    DO(nc_get_vara, 8 * ROWS * COLUMNS, nc_get_vara_double(file, variable, first, mine, back));
    DO(nc_close, 0, nc_close(file));
    for (int i = 0; i < ROWS * COLUMNS; i++)
        if (back[i] != field[i])
            fprintf(stderr, "wrong data\n");
    MPI_Finalize();
    return 0;
}
