/* The calls of parallel NetCDF-4: a file that all tasks open together, with one variable of bytes, "data". */
#define _GNU_SOURCE
#include "calls.h"

#ifndef ENSIO_PARALLEL_NETCDF

const struct layer netcdf_layer = {
    .name = "netcdf",
    .missing =
        "was built without parallel NetCDF: install its development files for this MPI (Debian: libnetcdf-mpi-dev, "
        "for Open MPI) and build ensio again",
};

#else

#include <netcdf.h>
#include <netcdf_meta.h>
#include <netcdf_par.h>

#if !NC_HAS_PARALLEL4
#error this NetCDF is serial: build.sh looks for another one
#endif

#define LAYER netcdf
#define LAYER_TABLE netcdf_layer
#define LIBRARY(function) nc_##function
#define LENGTH size_t
#include "variable_calls.h"

static int create(struct call_target *target)
{
    MPI_Info info = hints_for_mpiio(target->plan);
    int file = -1;
    int code = nc_create_par(target->file->path, NC_NETCDF4 | NC_CLOBBER, MPI_COMM_WORLD, info, &file);
    return opened(target, code, file, info);
}

static int open_path(struct call_target *target)
{
    MPI_Info info = hints_for_mpiio(target->plan);
    int file = -1;
    int code = nc_open_par(target->file->path, NC_WRITE, MPI_COMM_WORLD, info, &file);
    return opened(target, code, file, info);
}

static int create_variable(struct call_target *target, struct variable_file *file)
{
    if (define_variable(target) ||
        done(target, nc_def_var_fill(file->file, file->variable, NC_NOFILL, NULL))) /* the plan's writes fill it */
        return -1;
    return done(target, nc_enddef(file->file));
}

static int transfer(struct call_target *target, int writes, int is_collective)
{
    struct variable_file *file = target->file->netcdf;
    struct part part;
    const int first = part_of(target, &part);
    if (first < 0)
        return -1;
    if (file->is_collective != is_collective) {
        target->made++;
        if (done(target, nc_var_par_access(file->file, file->variable, is_collective ? NC_COLLECTIVE : NC_INDEPENDENT)))
            return -1;
        file->is_collective = is_collective;
    }
    target->made++;
    const size_t *start = &part.start[first], *length = &part.length[first];
    return moved(target, writes ? nc_put_vara_uchar(file->file, file->variable, start, length, target->data)
                                : nc_get_vara_uchar(file->file, file->variable, start, length, target->data));
}

#define CALLS(X) \
    X(create, 1, create(target), NAMED) \
    X(open, 1, open_path(target), NAMED) \
    X(close, 1, close_file(target), OPEN) \
    X(variable_create, 2, create_variable(target, file->netcdf), BOXES) \
    X(variable_open, 0, find_variable(target), OPEN) \
    X(write, 0, transfer(target, 1, 0), WRITE) \
    X(write_all, 0, transfer(target, 1, 1), WRITE) \
    X(read, 0, transfer(target, 0, 0), READ) \
    X(read_all, 0, transfer(target, 0, 1), READ) \
    X(sync, 1, done(target, nc_sync(file->netcdf->file)), OPEN)

CALLS(MAKE)

static const struct call calls[] = {CALLS(ROW){.name = NULL}};

const struct layer netcdf_layer = {.name = "netcdf", .calls = calls, .is_open = is_open, .look_ahead = look_ahead};

#endif
