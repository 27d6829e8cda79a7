/* A shared library that uses NetCDF, for programs that have their own, other NetCDF. */
#include <netcdf.h>

int create(const char *path)
{
    int file;
    return nc_create(path, NC_CLOBBER, &file) == 0 ? file : -1;
}

int fill(int file, const char *name, int count)
{
    static int numbers[100000];
    int dimension, variable;
    const int status = nc_def_dim(file, name, (size_t)count, &dimension) ||
                       nc_def_var(file, name, NC_INT, 1, &dimension, &variable) || nc_enddef(file) ||
                       nc_put_var_int(file, variable, numbers);
    return status ? -1 : nc_redef(file);
}

int finish(int file)
{
    return nc_close(file);
}
