#include "netcdf.h"
#include "requests.h"

#include <layers/recording.h>

#include <errno.h>

#define LONGEST_PATH 4096
#define MOST_DIMENSIONS 1024

/* The stack frames of the outermost wrappers of this thread; calls below them are internal calls of the library. */
static _Thread_local char *frames[ENSIO_NETCDF_LAYERS];

static struct ensio_object opened(const struct ensio_netcdf *netcdf, const int *id, const char *path)
{
    struct ensio_object file = ensio_object_unknown(netcdf->number, id ? *id >> netcdf->id_shift : -1);
    file.is_file = 1;
    if (!path || !*path)
        return file;
    ensio_object_set_file(&file, path);
    if (id)
        ensio_object_keep(&file);
    return file;
}

/* Asks the library for the path of an unknown file. */
static struct ensio_object file_of(const struct ensio_netcdf *netcdf, int id)
{
    struct ensio_object file = ensio_object_find(netcdf->number, id >> netcdf->id_shift);
    if (ENSIO_LIKELY(file.generation))
        return file;
    char path[LONGEST_PATH];
    size_t length = 0;
    if (netcdf->inq_path(id, &length, NULL) != 0 || length >= sizeof path || netcdf->inq_path(id, NULL, path) != 0)
        return file;
    path[length] = '\0';
    return opened(netcdf, &id, path);
}

/* Calls carry their bytes in both directions: a library moves data when it sees fit, also in calls that close or
 * synchronise a file, and the data have counted when the program put or got them. */
void ensio_netcdf_begin(struct ensio_netcdf_call *call, const struct ensio_netcdf *netcdf, uint16_t number, int id,
                        void *frame)
{
    struct ensio_thread *const thread = &ensio_thread;
    char *const outermost = frames[netcdf->layer];
    call->thread = NULL;
    if (ensio_unwanted_calls[number] || (outermost && (char *)frame < outermost) || !ensio_ready(thread))
        return;
    call->thread = thread;
    call->netcdf = netcdf;
    call->number = number;
    if (id != ENSIO_NETCDF_NO_FILE) {
        const int error = errno;
        call->file = file_of(netcdf, id);
        errno = error;
    }
    frames[netcdf->layer] = frame;
    call->depth = ensio_enter(thread, frame);
    thread->depth |= ENSIO_CARRIES_READ | ENSIO_CARRIES_WRITE;
    call->start = ensio_ticks();
}

int ensio_netcdf_returned(struct ensio_netcdf_call *call)
{
    if (!call->thread)
        return 0;
    call->duration = ensio_ticks() - call->start;
    call->thread->depth = call->depth;
    frames[call->netcdf->layer] = NULL;
    call->error = errno;
    return 1;
}

uint64_t ensio_netcdf_opened(struct ensio_netcdf_call *call, const int *id, const char *path)
{
    call->file = opened(call->netcdf, id, path);
    return 0;
}

uint64_t ensio_netcdf_opened_id(struct ensio_netcdf_call *call, const int *id)
{
    if (!id) {
        call->file = ensio_object_unknown(call->netcdf->number, -1);
    } else {
        (void)ensio_netcdf_closed(call, *id, 0); /* the id may have been another file's */
        call->file = file_of(call->netcdf, *id);
    }
    return 0;
}

uint64_t ensio_netcdf_closed(struct ensio_netcdf_call *call, int id, int result)
{
    if (result == 0 || call->netcdf->layer == ENSIO_PNETCDF) {
        ensio_netcdf_give_up(call->thread, call->netcdf, id);
        ensio_object_forget(call->netcdf->number, id >> call->netcdf->id_shift);
    }
    return 0;
}

uint64_t ensio_netcdf_product(uint64_t one, uint64_t other)
{
    uint64_t result;
    return __builtin_mul_overflow(one, other, &result) || result > INT64_MAX ? INT64_MAX : result;
}

static int dimensions_of(const struct ensio_netcdf *netcdf, int file, int variable)
{
    int dimensions = -1;
    return netcdf->inq_varndims(file, variable, &dimensions) == 0 && dimensions <= MOST_DIMENSIONS ? dimensions : -1;
}

static uint64_t whole(const struct ensio_netcdf *netcdf, int file, int variable)
{
    int ids[MOST_DIMENSIONS];
    const int dimensions = dimensions_of(netcdf, file, variable);
    uint64_t elements = 1, length;
    if (dimensions < 0 || netcdf->inq_vardimid(file, variable, ids) != 0)
        return 0;
    for (int i = 0; i < dimensions; i++) {
        length = 0;
        elements = netcdf->inq_dimlen(file, ids[i], &length) == 0 ? ensio_netcdf_product(elements, length) : 0;
    }
    return elements;
}

static uint64_t elements_of(int dimensions, const int64_t *count)
{
    uint64_t elements = dimensions >= 0;
    for (int i = 0; i < dimensions && count; i++)
        elements = ensio_netcdf_product(elements, count[i] > 0 ? (uint64_t)count[i] : 0);
    return elements;
}

uint64_t ensio_netcdf_elements(struct ensio_netcdf_call *call, int file, int variable, uint64_t elements)
{
    /* NC_NAT, BYTE, CHAR, SHORT, INT, FLOAT, DOUBLE, UBYTE, USHORT, UINT, INT64, UINT64, STRING */
    static const uint8_t bytes_of[] = {0, 1, 1, 2, 4, 4, 8, 1, 2, 4, 8, 8, sizeof(char *)};
    const struct ensio_netcdf *const netcdf = call->netcdf;
    int type = 0;
    size_t bytes = 0;
    if (netcdf->inq_vartype(file, variable, &type) != 0 || type < 0)
        return 0;
    if ((size_t)type < sizeof bytes_of)
        bytes = bytes_of[type];
    else if (!netcdf->inq_type || netcdf->inq_type(file, type, NULL, &bytes) != 0)
        return 0;
    return ensio_netcdf_product(elements, bytes);
}

uint64_t ensio_netcdf_whole(struct ensio_netcdf_call *call, int file, int variable)
{
    return ensio_netcdf_elements(call, file, variable, whole(call->netcdf, file, variable));
}

/* NetCDF takes the rest of the variable if the program gives no counts; it mostly is the whole. */
uint64_t ensio_netcdf_region(struct ensio_netcdf_call *call, int file, int variable, const int64_t *count)
{
    if (!count)
        return ensio_netcdf_whole(call, file, variable);
    return ensio_netcdf_elements(call, file, variable, elements_of(dimensions_of(call->netcdf, file, variable), count));
}

/* Without counts, each region is one element. */
uint64_t ensio_netcdf_regions(struct ensio_netcdf_call *call, int file, int variable, int regions,
                              const int64_t *const *counts)
{
    const int dimensions = dimensions_of(call->netcdf, file, variable);
    uint64_t elements = 0;
    for (int i = 0; dimensions >= 0 && i < regions; i++) /* else the library has not read the list */
        elements += elements_of(dimensions, counts ? counts[i] : NULL);
    return ensio_netcdf_elements(call, file, variable, elements);
}

/* Both libraries return an errno of the system as it is, and the library's errors as
 * negative numbers. */
int64_t ensio_netcdf_failure(int result)
{
    enum { NC_EBADID = -33, NC_EXIST = -35, NC_EINVAL = -36, NC_EPERM = -37, NC_ERANGE = -60, NC_ENOMEM = -61 };
    switch (result) {
    case NC_EBADID:
        return -EBADF;
    case NC_EXIST:
        return -EEXIST;
    case NC_EINVAL:
        return -EINVAL;
    case NC_EPERM:
        return -EPERM;
    case NC_ERANGE:
        return -ERANGE;
    case NC_ENOMEM:
        return -ENOMEM;
    default:
        return result > 0 && result < 4096 ? -(int64_t)result : result ? -ENSIO_NO_ERRNO : 0;
    }
}

int ensio_netcdf_end(struct ensio_netcdf_call *call, int result, uint64_t bytes)
{
    const int64_t failure = ensio_netcdf_failure(result);
    ensio_object_store(call->thread, call->number, &call->file, -1, bytes, failure ? failure : (int64_t)bytes,
                       call->start, call->duration);
    errno = call->error;
    return result;
}
