/* Writes and reads a NetCDF file in all ways of the C interface, and says on descriptor 3 what it did: call, requested,
 * moved, errno. Run in an empty folder; the argument "4" chooses the format netCDF-4. Returns 7. */
#include <netcdf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROWS 20
#define COLUMNS 30

static void say(const char *call, long requested, long moved, int error)
{
    dprintf(3, "%s %ld %ld %d -1\n", call, requested, moved, error);
}

/* A call that must succeed. */
#define DO(name, bytes, call) \
    do { \
        const int status = (call); \
        if (status != NC_NOERR) { \
            fprintf(stderr, "%s: %s\n", #call, nc_strerror(status)); \
            exit(1); \
        } \
        say(#name, (bytes), (bytes), 0); \
    } while (0)

#define FAIL(name, requested, error, status, call) \
    do { \
        if ((call) != (status)) { \
            fprintf(stderr, "%s: not %d\n", #call, (status)); \
            exit(1); \
        } \
        say(#name, (requested), -1, (error)); \
    } while (0)

int main(int count, char **arguments)
{
    const int four = count > 1 && strcmp(arguments[1], "4") == 0;
    const size_t whole[2] = {0, 0}, half[2] = {ROWS / 2, COLUMNS}, some[2] = {5, 7}, one[2] = {3, 4};
    const ptrdiff_t stride[2] = {2, 3}, map[2] = {1, 5};
    static double doubles[ROWS * COLUMNS], back[ROWS * COLUMNS];
    static int ints[ROWS * COLUMNS];
    static float floats[ROWS * COLUMNS];
    char text[] = "degrees";
    int file, dimensions[2], variable, records, number = 42;
    for (int i = 0; i < ROWS * COLUMNS; i++)
        doubles[i] = ints[i] = floats[i] = i;

    FAIL(nc_open, 0, 2, 2, nc_open("missing.nc", NC_NOWRITE, &file));
    DO(nc_create, 0, nc_create("a.nc", NC_CLOBBER | (four ? NC_NETCDF4 : 0), &file));
    DO(nc_def_dim, 0, nc_def_dim(file, "row", ROWS, &dimensions[0]));
    DO(nc_def_dim, 0, nc_def_dim(file, "column", COLUMNS, &dimensions[1]));
    DO(nc_def_var, 0, nc_def_var(file, "field", NC_DOUBLE, 2, dimensions, &variable));
    DO(nc_put_att, 0, nc_put_att_text(file, variable, "units", strlen(text), text));
    DO(nc_put_att, 0, nc_put_att_int(file, variable, "number", NC_SHORT, 1, &number));
    DO(nc_put_att, 0, nc_put_att(file, NC_GLOBAL, "any", NC_INT, 1, &number));
    DO(nc_enddef, 0, nc_enddef(file));
    DO(nc_put_var, 8 * ROWS * COLUMNS, nc_put_var_double(file, variable, doubles));
    DO(nc_put_var, 8 * ROWS * COLUMNS, nc_put_var(file, variable, doubles));
    DO(nc_put_var1, 8, nc_put_var1_int(file, variable, one, ints)); /* 4 bytes in memory, 8 in the file */
    DO(nc_put_vara, 4 * ROWS * COLUMNS, nc_put_vara_float(file, variable, whole, half, floats));
    DO(nc_put_vara, 4 * ROWS * COLUMNS, nc_put_vara(file, variable, whole, half, doubles));
    DO(nc_put_vars, 8 * 35, nc_put_vars_double(file, variable, whole, some, stride, doubles));
    DO(nc_put_varm, 8 * 35, nc_put_varm_int(file, variable, whole, some, stride, map, ints));
    FAIL(nc_put_vara, 8 * ROWS * COLUMNS * 4, 0, NC_EEDGE,
         nc_put_vara_double(file, variable, whole, (const size_t[2]){2 * ROWS, 2 * COLUMNS}, doubles));
    DO(nc_sync, 0, nc_sync(file));
    DO(nc_get_var, 8 * ROWS * COLUMNS, nc_get_var_double(file, variable, back));
    DO(nc_get_var1, 8, nc_get_var1_longlong(file, variable, one, (long long *)back));
    DO(nc_get_vara, 4 * ROWS * COLUMNS, nc_get_vara_ushort(file, variable, whole, half, (unsigned short *)back));
    DO(nc_get_vars, 8 * 35, nc_get_vars_int(file, variable, whole, some, stride, ints));
    DO(nc_get_varm, 8 * 35, nc_get_varm_double(file, variable, whole, some, stride, map, back));
    DO(nc_get_att, 0, nc_get_att_text(file, variable, "units", text));
    DO(nc_get_att, 0, nc_get_att_int(file, variable, "number", &number));
    DO(nc_get_att, 0, nc_get_att(file, variable, "number", back));
    DO(nc_redef, 0, nc_redef(file));
    DO(nc_def_dim, 0, nc_def_dim(file, "time", NC_UNLIMITED, &dimensions[0]));
    DO(nc_def_var, 0, nc_def_var(file, "series", NC_SHORT, 2, dimensions, &records));
    DO(nc_enddef, 0, nc__enddef(file, 0, 4, 0, 4));
    for (size_t step = 0; step < 3; step++)
        DO(nc_put_vara, 2 * COLUMNS,
           nc_put_vara_int(file, records, (const size_t[2]){step, 0}, (const size_t[2]){1, COLUMNS}, ints));
    DO(nc_get_var, 2 * 3 * COLUMNS, nc_get_var_float(file, records, floats));
    ints[0] = 100000;
    FAIL(nc_put_var1, 2, 34, NC_ERANGE, nc_put_var1_int(file, records, one, ints));
    DO(nc_close, 0, nc_close(file));
    FAIL(nc_create, 0, 17, NC_EEXIST, nc_create("a.nc", NC_NOCLOBBER, &file));
    DO(nc_open, 0, nc_open("./a.nc", NC_NOWRITE, &file));
    FAIL(nc_put_var, 8 * ROWS * COLUMNS, four ? 0 : 1, four ? NC_EHDFERR : NC_EPERM,
         nc_put_var_double(file, variable, doubles));
    DO(nc_abort, 0, nc_abort(file));
    return 7;
}
