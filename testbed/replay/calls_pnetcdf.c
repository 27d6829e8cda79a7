/* The calls of PnetCDF: a file that all tasks open together, with one variable of bytes, "data". Transfers are
 * collective, independent between begin_independent and end_independent, or requests, which wait_all completes. */
#define _GNU_SOURCE
#include "calls.h"

#ifndef ENSIO_PNETCDF

const struct layer pnetcdf_layer = {
    .name = "pnetcdf",
    .missing =
        "was built without PnetCDF: install its development files for this MPI (Debian: libpnetcdf-dev, for Open "
        "MPI) and build ensio again",
};

#else

#include "fail.h"
#include "file_data.h"
#include "hints.h"
#include "variable_blocks.h"

#include <mpi.h>
#include <pnetcdf.h>
#include <stdlib.h>
#include <string.h>

struct pnetcdf_file {
    int file; /* negative: closed */
    int variable;
    int64_t lengths[VARIABLE_DIMENSIONS];
    int *requests; /* posted, and not completed */
    int request_count;
    int request_room;
};

/* 0 if PnetCDF returned success, else -1 and the reason. */
static int done(struct call_target *target, int code)
{
    if (code == NC_NOERR)
        return 0;
    snprintf(target->problem, sizeof target->problem, "failed: %s", ncmpi_strerror(code));
    return -1;
}

static int make_create(struct call_target *target, long count)
{
    MPI_Info info = hints_for_mpiio(target->plan);
    int file = -1;
    target->made += count;
    int code = ncmpi_create(MPI_COMM_WORLD, target->file->path, NC_CLOBBER | NC_64BIT_DATA, info, &file);
    target->file->pnetcdf->file = code == NC_NOERR ? file : -1;
    if (info != MPI_INFO_NULL)
        PMPI_Info_free(&info);
    return done(target, code);
}

static int make_open(struct call_target *target, long count)
{
    MPI_Info info = hints_for_mpiio(target->plan);
    int file = -1;
    target->made += count;
    int code = ncmpi_open(MPI_COMM_WORLD, target->file->path, NC_WRITE, info, &file);
    target->file->pnetcdf->file = code == NC_NOERR ? file : -1;
    if (info != MPI_INFO_NULL)
        PMPI_Info_free(&info);
    return done(target, code);
}

static int make_close(struct call_target *target, long count)
{
    int file = target->file->pnetcdf->file;
    target->made += count;
    target->file->pnetcdf->file = -1;
    return done(target, ncmpi_close(file));
}

/* A new file is in define mode, which this call ends. */
static int make_variable_create(struct call_target *target, long count)
{
    struct pnetcdf_file *file = target->file->pnetcdf;
    int dimensions[VARIABLE_DIMENSIONS];
    if (variable_lengths(target, file->lengths))
        return -1;
    const int first = variable_first(file->lengths);
    for (int i = first; i < VARIABLE_DIMENSIONS; i++) {
        target->made += count;
        if (done(target, ncmpi_def_dim(file->file, variable_dimensions[i], file->lengths[i], &dimensions[i])))
            return -1;
    }
    target->made += 2 * count;
    if (done(target, ncmpi_def_var(file->file, VARIABLE, NC_UBYTE, VARIABLE_DIMENSIONS - first, &dimensions[first],
                                   &file->variable)))
        return -1;
    return done(target, ncmpi_enddef(file->file));
}

/* Finds the variable; PnetCDF has it in memory. */
static int make_variable_open(struct call_target *target, long count)
{
    struct pnetcdf_file *file = target->file->pnetcdf;
    int dimensions[VARIABLE_DIMENSIONS], dimension_count = 0;
    (void)count;
    if (done(target, ncmpi_inq_varid(file->file, VARIABLE, &file->variable)) ||
        done(target, ncmpi_inq_varndims(file->file, file->variable, &dimension_count)))
        return -1;
    const int first = VARIABLE_DIMENSIONS - dimension_count;
    if (variable_has_dimensions(target, dimension_count) ||
        done(target, ncmpi_inq_vardimid(file->file, file->variable, &dimensions[first])))
        return -1;
    file->lengths[VARIABLE_BOXES] = 1;
    for (int i = first; i < VARIABLE_DIMENSIONS; i++) {
        MPI_Offset length;
        if (done(target, ncmpi_inq_dimlen(file->file, dimensions[i], &length)))
            return -1;
        file->lengths[i] = length;
    }
    return 0;
}

static int make_begin_independent(struct call_target *target, long count)
{
    target->made += count;
    return done(target, ncmpi_begin_indep_data(target->file->pnetcdf->file));
}

static int make_end_independent(struct call_target *target, long count)
{
    target->made += count;
    return done(target, ncmpi_end_indep_data(target->file->pnetcdf->file));
}

/* Room for one more request; NULL with a problem if there is no memory. */
static int *next_request(struct call_target *target)
{
    struct pnetcdf_file *file = target->file->pnetcdf;
    if (file->request_count == file->request_room) {
        int room = file->request_room ? 2 * file->request_room : 16;
        int *requests = realloc(file->requests, (size_t)room * sizeof *requests);
        if (!requests) {
            snprintf(target->problem, sizeof target->problem, "has no memory for %d requests", room);
            return NULL;
        }
        file->requests = requests;
        file->request_room = room;
    }
    return &file->requests[file->request_count];
}

enum transfer { READ, WRITE, READ_ALL, WRITE_ALL, IGET, IPUT };

static int transfer(struct call_target *target, enum transfer how)
{
    struct pnetcdf_file *file = target->file->pnetcdf;
    struct variable_block block;
    MPI_Offset start[VARIABLE_DIMENSIONS], length[VARIABLE_DIMENSIONS];
    int code, *request = NULL;
    if (variable_block_of(target, file->lengths, &block))
        return -1;
    const int first = variable_first(file->lengths);
    for (int i = 0; i < VARIABLE_DIMENSIONS; i++) {
        start[i] = block.start[i];
        length[i] = block.count[i];
    }
    if ((how == IGET || how == IPUT) && !(request = next_request(target)))
        return -1;
    target->made++;
    switch (how) {
    case READ:
        code = ncmpi_get_vara_uchar(file->file, file->variable, &start[first], &length[first], target->data);
        break;
    case WRITE:
        code = ncmpi_put_vara_uchar(file->file, file->variable, &start[first], &length[first], target->data);
        break;
    case READ_ALL:
        code = ncmpi_get_vara_uchar_all(file->file, file->variable, &start[first], &length[first], target->data);
        break;
    case WRITE_ALL:
        code = ncmpi_put_vara_uchar_all(file->file, file->variable, &start[first], &length[first], target->data);
        break;
    case IGET:
        code = ncmpi_iget_vara_uchar(file->file, file->variable, &start[first], &length[first], target->data, request);
        break;
    default:
        code = ncmpi_iput_vara_uchar(file->file, file->variable, &start[first], &length[first], target->data, request);
        break;
    }
    if (done(target, code))
        return -1;
    file->request_count += request != NULL;
    target->moved = plan_bytes(target->operation);
    return 0;
}

#define CALL_OF(name, how) \
    static int name(struct call_target *target, long count) \
    { \
        (void)count; \
        return transfer(target, how); \
    }

CALL_OF(make_read, READ)
CALL_OF(make_write, WRITE)
CALL_OF(make_read_all, READ_ALL)
CALL_OF(make_write_all, WRITE_ALL)
CALL_OF(make_iget, IGET)
CALL_OF(make_iput, IPUT)

static int make_wait_all(struct call_target *target, long count)
{
    struct pnetcdf_file *file = target->file->pnetcdf;
    int *statuses = calloc((size_t)file->request_count + 1, sizeof *statuses);
    if (!statuses) {
        snprintf(target->problem, sizeof target->problem, "has no memory for %d requests", file->request_count);
        return -1;
    }
    target->made += count;
    int result = done(target, ncmpi_wait_all(file->file, file->request_count, file->requests, statuses));
    for (int i = 0; i < file->request_count && result == 0; i++)
        result = done(target, statuses[i]);
    file->request_count = 0;
    free(statuses);
    return result;
}

static int make_sync(struct call_target *target, long count)
{
    target->made += count;
    return done(target, ncmpi_sync(target->file->pnetcdf->file));
}

static int is_open(const struct open_file *file)
{
    return file->pnetcdf && file->pnetcdf->file >= 0;
}

static void look_ahead(const struct plan *plan, struct open_file *files)
{
    for (long i = 0; i < plan->operation_count; i++) {
        const struct plan_operation *operation = &plan->operations[i];
        if (operation->file < 0 || files[operation->file].pnetcdf || !is_of_layer(plan, operation, &pnetcdf_layer))
            continue;
        struct pnetcdf_file *file = calloc(1, sizeof *file);
        if (!file)
            fail(EXIT_FAILURE, "no memory for the file %s", files[operation->file].path);
        file->file = -1;
        files[operation->file].pnetcdf = file;
    }
}

static const struct call calls[] = {
    {.name = "create", .make = make_create, .on = NAMED_FILE},
    {.name = "open", .make = make_open, .on = NAMED_FILE},
    {.name = "close", .make = make_close, .on = OPEN_FILE},
    {.name = "variable_create", .make = make_variable_create, .on = OPEN_FILE, .in_boxes = 1},
    {.name = "variable_open", .make = make_variable_open, .on = OPEN_FILE},
    {.name = "begin_independent", .make = make_begin_independent, .on = OPEN_FILE},
    {.name = "end_independent", .make = make_end_independent, .on = OPEN_FILE},
    {.name = "write", .make = make_write, .data = &data_written, .on = OPEN_FILE, .in_boxes = 1},
    {.name = "write_all", .make = make_write_all, .data = &data_written, .on = OPEN_FILE, .in_boxes = 1},
    {.name = "read", .make = make_read, .data = &data_read, .on = OPEN_FILE, .in_boxes = 1},
    {.name = "read_all", .make = make_read_all, .data = &data_read, .on = OPEN_FILE, .in_boxes = 1},
    {.name = "iput", .make = make_iput, .data = &data_written, .on = OPEN_FILE, .in_boxes = 1},
    {.name = "iget", .make = make_iget, .data = &data_read, .on = OPEN_FILE, .in_boxes = 1},
    {.name = "wait_all", .make = make_wait_all, .on = OPEN_FILE},
    {.name = "sync", .make = make_sync, .on = OPEN_FILE},
    {.name = NULL},
};

const struct layer pnetcdf_layer = {.name = "pnetcdf", .calls = calls, .is_open = is_open, .look_ahead = look_ahead};

#endif
