#include "netcdf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST_PATH 4096
#define MOST_DIMENSIONS 1024

_Thread_local char *ensio_netcdf_frames[ENSIO_NETCDF_LAYERS];

struct ensio_object ensio_netcdf_file(const struct ensio_netcdf *netcdf, int id)
{
    struct ensio_object file = ensio_object_find(netcdf->number, id >> netcdf->id_shift);
    if (ENSIO_LIKELY(file.generation))
        return file;
    char path[LONGEST_PATH];
    size_t length = 0;
    if (netcdf->inq_path(id, &length, NULL) != 0 || length >= sizeof path || netcdf->inq_path(id, NULL, path) != 0)
        return file;
    path[length] = '\0';
    return ensio_netcdf_opened(netcdf, &id, path);
}

struct ensio_object ensio_netcdf_opened(const struct ensio_netcdf *netcdf, const int *id, const char *path)
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

void ensio_netcdf_forget(const struct ensio_netcdf *netcdf, int id)
{
    ensio_object_forget(netcdf->number, id >> netcdf->id_shift);
}

static uint64_t product(uint64_t one, uint64_t other)
{
    uint64_t result;
    return __builtin_mul_overflow(one, other, &result) || result > INT64_MAX ? INT64_MAX : result;
}

static int dimensions_of(const struct ensio_netcdf *netcdf, int file, int variable)
{
    int dimensions = -1;
    return netcdf->inq_varndims(file, variable, &dimensions) == 0 && dimensions <= MOST_DIMENSIONS ? dimensions : -1;
}

uint64_t ensio_netcdf_whole(const struct ensio_netcdf *netcdf, int file, int variable)
{
    int ids[MOST_DIMENSIONS];
    const int dimensions = dimensions_of(netcdf, file, variable);
    uint64_t elements = 1, length;
    if (dimensions < 0 || netcdf->inq_vardimid(file, variable, ids) != 0)
        return 0;
    for (int i = 0; i < dimensions; i++) {
        length = 0;
        elements = netcdf->inq_dimlen(file, ids[i], &length) == 0 ? product(elements, length) : 0;
    }
    return elements;
}

static uint64_t elements_of(int dimensions, const int64_t *count)
{
    uint64_t elements = dimensions >= 0;
    for (int i = 0; i < dimensions && count; i++)
        elements = product(elements, count[i] > 0 ? (uint64_t)count[i] : 0);
    return elements;
}

/* NetCDF takes the rest of the variable if the program gives no counts; it mostly is the whole. */
uint64_t ensio_netcdf_region(const struct ensio_netcdf *netcdf, int file, int variable, const int64_t *count)
{
    return count ? elements_of(dimensions_of(netcdf, file, variable), count)
                 : ensio_netcdf_whole(netcdf, file, variable);
}

/* Without counts, each region is one element. */
uint64_t ensio_netcdf_regions(const struct ensio_netcdf *netcdf, int file, int variable, int regions,
                              const int64_t *const *counts)
{
    const int dimensions = dimensions_of(netcdf, file, variable);
    uint64_t elements = 0;
    for (int i = 0; i < regions; i++)
        elements += elements_of(dimensions, counts ? counts[i] : NULL);
    return elements;
}

uint64_t ensio_netcdf_bytes(const struct ensio_netcdf *netcdf, int file, int variable, uint64_t elements)
{
    /* NC_NAT, BYTE, CHAR, SHORT, INT, FLOAT, DOUBLE, UBYTE, USHORT, UINT, INT64, UINT64, STRING */
    static const uint8_t bytes_of[] = {0, 1, 1, 2, 4, 4, 8, 1, 2, 4, 8, 8, sizeof(char *)};
    int type = 0;
    size_t bytes = 0;
    if (netcdf->inq_vartype(file, variable, &type) != 0 || type < 0)
        return 0;
    if ((size_t)type < sizeof bytes_of)
        bytes = bytes_of[type];
    else if (!netcdf->inq_type || netcdf->inq_type(file, type, NULL, &bytes) != 0)
        return 0;
    return product(elements, bytes);
}

/* Minus the errno of a failure. Both libraries return an errno of the system as it is, and the library's errors as
 * negative numbers. */
static int64_t failure_of(int result)
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
        return result > 0 && result < 4096 ? -(int64_t)result : result ? -EIO : 0;
    }
}

void ensio_netcdf_store(struct ensio_thread *thread, uint16_t call, const struct ensio_object *file, uint64_t bytes,
                        int result, uint64_t start, uint64_t duration)
{
    const int64_t failure = failure_of(result);
    ensio_object_store(thread, call, file, -1, bytes, failure ? failure : (int64_t)bytes, start, duration);
}
