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

#include <pnetcdf.h>

#define LAYER pnetcdf
#define LAYER_TABLE pnetcdf_layer
#define LIBRARY(function) ncmpi_##function
#define LENGTH MPI_Offset
#include "variable_calls.h"

static int create(struct call_target *target)
{
    MPI_Info info = hints_for_mpiio(target->plan);
    int file = -1;
    int code = ncmpi_create(MPI_COMM_WORLD, target->file->path, NC_CLOBBER | NC_64BIT_DATA, info, &file);
    return opened(target, code, file, info);
}

static int open_path(struct call_target *target)
{
    MPI_Info info = hints_for_mpiio(target->plan);
    int file = -1;
    int code = ncmpi_open(MPI_COMM_WORLD, target->file->path, NC_WRITE, info, &file);
    return opened(target, code, file, info);
}

/* Room for one more request; NULL with a problem if there is no memory. */
static int *next_request(struct call_target *target)
{
    struct variable_file *file = target->file->pnetcdf;
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

enum transfer { GET, PUT, GET_ALL, PUT_ALL, IGET, IPUT };

static int transfer(struct call_target *target, enum transfer how)
{
    struct variable_file *file = target->file->pnetcdf;
    struct part part;
    const int first = part_of(target, &part);
    int code, *request = NULL;
    if (first < 0)
        return -1;
    if ((how == IGET || how == IPUT) && !(request = next_request(target)))
        return -1;
    target->made++;
    const MPI_Offset *start = &part.start[first], *length = &part.length[first];
    switch (how) {
    case GET:
        code = ncmpi_get_vara_uchar(file->file, file->variable, start, length, target->data);
        break;
    case PUT:
        code = ncmpi_put_vara_uchar(file->file, file->variable, start, length, target->data);
        break;
    case GET_ALL:
        code = ncmpi_get_vara_uchar_all(file->file, file->variable, start, length, target->data);
        break;
    case PUT_ALL:
        code = ncmpi_put_vara_uchar_all(file->file, file->variable, start, length, target->data);
        break;
    case IGET:
        code = ncmpi_iget_vara_uchar(file->file, file->variable, start, length, target->data, request);
        break;
    default:
        code = ncmpi_iput_vara_uchar(file->file, file->variable, start, length, target->data, request);
        break;
    }
    file->request_count += request != NULL && code == NC_NOERR;
    return moved(target, code);
}

static int wait_all(struct call_target *target)
{
    struct variable_file *file = target->file->pnetcdf;
    int *statuses = calloc((size_t)file->request_count + 1, sizeof *statuses);
    if (!statuses) {
        snprintf(target->problem, sizeof target->problem, "has no memory for %d requests", file->request_count);
        return -1;
    }
    int result = done(target, ncmpi_wait_all(file->file, file->request_count, file->requests, statuses));
    for (int i = 0; i < file->request_count && result == 0; i++)
        result = done(target, statuses[i]);
    file->request_count = 0;
    free(statuses);
    return result;
}

#define CALLS(X) \
    X(create, 1, create(target), NAMED) \
    X(open, 1, open_path(target), NAMED) \
    X(close, 1, close_file(target), OPEN) \
    X(variable_create, 2, define_variable(target) ? -1 : done(target, ncmpi_enddef(file->pnetcdf->file)), BOXES) \
    X(variable_open, 0, find_variable(target), OPEN) \
    X(begin_independent, 1, done(target, ncmpi_begin_indep_data(file->pnetcdf->file)), OPEN) \
    X(end_independent, 1, done(target, ncmpi_end_indep_data(file->pnetcdf->file)), OPEN) \
    X(write, 0, transfer(target, PUT), WRITE) \
    X(write_all, 0, transfer(target, PUT_ALL), WRITE) \
    X(read, 0, transfer(target, GET), READ) \
    X(read_all, 0, transfer(target, GET_ALL), READ) \
    X(iput, 0, transfer(target, IPUT), WRITE) \
    X(iget, 0, transfer(target, IGET), READ) \
    X(wait_all, 1, wait_all(target), OPEN) \
    X(sync, 1, done(target, ncmpi_sync(file->pnetcdf->file)), OPEN)

CALLS(MAKE)

static const struct call calls[] = {CALLS(ROW){.name = NULL}};

const struct layer pnetcdf_layer = {.name = "pnetcdf", .calls = calls, .is_open = is_open, .look_ahead = look_ahead};

#endif
