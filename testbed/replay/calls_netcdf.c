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

#include "fail.h"
#include "file_data.h"
#include "hints.h"
#include "variable_blocks.h"

#include <mpi.h>
#include <netcdf.h>
#include <netcdf_meta.h>
#include <netcdf_par.h>
#include <stdlib.h>

#if !NC_HAS_PARALLEL4
#error this NetCDF is serial: build.sh looks for another one
#endif

struct netcdf_file {
    int file; /* negative: closed */
    int variable;
    int access; /* NC_COLLECTIVE or NC_INDEPENDENT */
    int64_t lengths[VARIABLE_DIMENSIONS];
};

/* 0 if NetCDF returned success, else -1 and the reason. */
static int done(struct call_target *target, int code)
{
    if (code == NC_NOERR)
        return 0;
    snprintf(target->problem, sizeof target->problem, "failed: %s", nc_strerror(code));
    return -1;
}

static int keep_file(struct call_target *target, int code, int file, MPI_Info info)
{
    target->file->netcdf->file = code == NC_NOERR ? file : -1;
    target->file->netcdf->access = NC_INDEPENDENT; /* of every file that NetCDF opens */
    if (info != MPI_INFO_NULL)
        PMPI_Info_free(&info);
    return done(target, code);
}

static int make_create(struct call_target *target, long count)
{
    MPI_Info info = hints_for_mpiio(target->plan);
    int file = -1;
    target->made += count;
    int code = nc_create_par(target->file->path, NC_NETCDF4 | NC_CLOBBER, MPI_COMM_WORLD, info, &file);
    return keep_file(target, code, file, info);
}

static int make_open(struct call_target *target, long count)
{
    MPI_Info info = hints_for_mpiio(target->plan);
    int file = -1;
    target->made += count;
    int code = nc_open_par(target->file->path, NC_WRITE, MPI_COMM_WORLD, info, &file);
    return keep_file(target, code, file, info);
}

static int make_close(struct call_target *target, long count)
{
    int file = target->file->netcdf->file;
    target->made += count;
    target->file->netcdf->file = -1;
    return done(target, nc_close(file));
}

/* A new file is in define mode, which this call ends. */
static int make_variable_create(struct call_target *target, long count)
{
    struct netcdf_file *file = target->file->netcdf;
    int dimensions[VARIABLE_DIMENSIONS];
    if (variable_lengths(target, file->lengths))
        return -1;
    const int first = variable_first(file->lengths);
    for (int i = first; i < VARIABLE_DIMENSIONS; i++) {
        target->made += count;
        if (done(target, nc_def_dim(file->file, variable_dimensions[i], (size_t)file->lengths[i], &dimensions[i])))
            return -1;
    }
    target->made += 2 * count;
    if (done(target, nc_def_var(file->file, VARIABLE, NC_UBYTE, VARIABLE_DIMENSIONS - first, &dimensions[first],
                                &file->variable)) ||
        done(target, nc_def_var_fill(file->file, file->variable, NC_NOFILL, NULL))) /* the plan's writes fill it */
        return -1;
    return done(target, nc_enddef(file->file));
}

/* Finds the variable; NetCDF has it in memory. */
static int make_variable_open(struct call_target *target, long count)
{
    struct netcdf_file *file = target->file->netcdf;
    int dimensions[VARIABLE_DIMENSIONS], dimension_count = 0;
    (void)count;
    if (done(target, nc_inq_varid(file->file, VARIABLE, &file->variable)) ||
        done(target, nc_inq_varndims(file->file, file->variable, &dimension_count)))
        return -1;
    const int first = VARIABLE_DIMENSIONS - dimension_count;
    if (variable_has_dimensions(target, dimension_count) ||
        done(target, nc_inq_vardimid(file->file, file->variable, &dimensions[first])))
        return -1;
    file->lengths[VARIABLE_BOXES] = 1;
    for (int i = first; i < VARIABLE_DIMENSIONS; i++) {
        size_t length;
        if (done(target, nc_inq_dimlen(file->file, dimensions[i], &length)))
            return -1;
        file->lengths[i] = (int64_t)length;
    }
    return 0;
}

/* Whether transfers are collective is a setting of the variable. */
static int transfer(struct call_target *target, int writes, int access)
{
    struct netcdf_file *file = target->file->netcdf;
    struct variable_block block;
    size_t start[VARIABLE_DIMENSIONS], length[VARIABLE_DIMENSIONS];
    if (variable_block_of(target, file->lengths, &block))
        return -1;
    const int first = variable_first(file->lengths);
    for (int i = 0; i < VARIABLE_DIMENSIONS; i++) {
        start[i] = (size_t)block.start[i];
        length[i] = (size_t)block.count[i];
    }
    if (file->access != access) {
        target->made++;
        if (done(target, nc_var_par_access(file->file, file->variable, access)))
            return -1;
        file->access = access;
    }
    target->made++;
    int code = writes ? nc_put_vara_uchar(file->file, file->variable, &start[first], &length[first], target->data)
                      : nc_get_vara_uchar(file->file, file->variable, &start[first], &length[first], target->data);
    if (done(target, code))
        return -1;
    target->moved = plan_bytes(target->operation);
    return 0;
}

#define CALL_OF(name, writes, access) \
    static int name(struct call_target *target, long count) \
    { \
        (void)count; \
        return transfer(target, writes, access); \
    }

CALL_OF(make_read, 0, NC_INDEPENDENT)
CALL_OF(make_write, 1, NC_INDEPENDENT)
CALL_OF(make_read_all, 0, NC_COLLECTIVE)
CALL_OF(make_write_all, 1, NC_COLLECTIVE)

static int make_sync(struct call_target *target, long count)
{
    target->made += count;
    return done(target, nc_sync(target->file->netcdf->file));
}

static int is_open(const struct open_file *file)
{
    return file->netcdf && file->netcdf->file >= 0;
}

static void look_ahead(const struct plan *plan, struct open_file *files)
{
    for (long i = 0; i < plan->operation_count; i++) {
        const struct plan_operation *operation = &plan->operations[i];
        if (operation->file < 0 || files[operation->file].netcdf || !is_of_layer(plan, operation, &netcdf_layer))
            continue;
        struct netcdf_file *file = calloc(1, sizeof *file);
        if (!file)
            fail(EXIT_FAILURE, "no memory for the file %s", files[operation->file].path);
        file->file = -1;
        files[operation->file].netcdf = file;
    }
}

static const struct call calls[] = {
    {.name = "create", .make = make_create, .on = NAMED_FILE},
    {.name = "open", .make = make_open, .on = NAMED_FILE},
    {.name = "close", .make = make_close, .on = OPEN_FILE},
    {.name = "variable_create", .make = make_variable_create, .on = OPEN_FILE, .in_boxes = 1},
    {.name = "variable_open", .make = make_variable_open, .on = OPEN_FILE},
    {.name = "write", .make = make_write, .data = &data_written, .on = OPEN_FILE, .in_boxes = 1},
    {.name = "write_all", .make = make_write_all, .data = &data_written, .on = OPEN_FILE, .in_boxes = 1},
    {.name = "read", .make = make_read, .data = &data_read, .on = OPEN_FILE, .in_boxes = 1},
    {.name = "read_all", .make = make_read_all, .data = &data_read, .on = OPEN_FILE, .in_boxes = 1},
    {.name = "sync", .make = make_sync, .on = OPEN_FILE},
    {.name = NULL},
};

const struct layer netcdf_layer = {.name = "netcdf", .calls = calls, .is_open = is_open, .look_ahead = look_ahead};

#endif
