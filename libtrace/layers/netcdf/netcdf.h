/* netcdf.h: helpers of the wrappers of NetCDF and PnetCDF, whose files and variables are alike: the file behind an id,
 * the bytes of a part of a variable. No header of either library is needed.
 *
 * Queries come after the program's call, and outside of its duration. They read what the library holds in memory. */
#ifndef ENSIO_LAYERS_NETCDF_NETCDF_H
#define ENSIO_LAYERS_NETCDF_NETCDF_H

#include <core/recorder.h>
#include <layers/library_objects.h>

#include <stddef.h>

/* QUERY(function, parameters): the name without its nc_ or ncmpi_. The length of a path is a size_t in NetCDF and an
 * int in PnetCDF. */
#define ENSIO_NETCDF_QUERIES(QUERY) \
    QUERY(inq_path, (int file, size_t *length, char *path)) \
    QUERY(inq_varndims, (int file, int variable, int *dimensions)) \
    QUERY(inq_vardimid, (int file, int variable, int *ids)) \
    QUERY(inq_dimlen, (int file, int id, uint64_t *length)) \
    QUERY(inq_vartype, (int file, int variable, int *type))

#define ENSIO_NETCDF_MEMBER(name, parameters) int(*name) parameters;

/* A library, or one of its interfaces. An id is valid only in the library that created it. */
struct ensio_netcdf {
    uint32_t number; /* number of the library in the process */
    int id_shift;    /* bits of an id below those of the file; NetCDF has groups there */
    ENSIO_NETCDF_QUERIES(ENSIO_NETCDF_MEMBER)
    int (*inq_type)(int file, int type, char *name, size_t *bytes); /* NULL: there are no types but the usual ones */
};

/* The stack frames of the outermost wrappers of this thread; calls below them are internal calls of the library. */
enum ensio_netcdf_layer { ENSIO_NETCDF, ENSIO_PNETCDF, ENSIO_NETCDF_LAYERS };
extern _Thread_local char *ensio_netcdf_frames[ENSIO_NETCDF_LAYERS];

/* The file of an id; asks the library for the path of an unknown one. These functions may change errno. */
struct ensio_object ensio_netcdf_file(const struct ensio_netcdf *netcdf, int id);

/* The file that was opened at `path`; `id` is NULL if that failed. */
struct ensio_object ensio_netcdf_opened(const struct ensio_netcdf *netcdf, const int *id, const char *path);

void ensio_netcdf_forget(const struct ensio_netcdf *netcdf, int id);

/* Numbers of elements: of a whole variable, of a region, of several regions. 0: the variable is unknown. */
uint64_t ensio_netcdf_whole(const struct ensio_netcdf *netcdf, int file, int variable);
uint64_t ensio_netcdf_region(const struct ensio_netcdf *netcdf, int file, int variable, const int64_t *count);
uint64_t ensio_netcdf_regions(const struct ensio_netcdf *netcdf, int file, int variable, int regions,
                              const int64_t *const *counts);

/* The bytes of elements of a variable, in the variable's own type. For strings and variable-length data, those of the
 * references in memory. */
uint64_t ensio_netcdf_bytes(const struct ensio_netcdf *netcdf, int file, int variable, uint64_t elements);

/* Stores a call that returned `result`. */
void ensio_netcdf_store(struct ensio_thread *thread, uint16_t call, const struct ensio_object *file, uint64_t bytes,
                        int result, uint64_t start, uint64_t duration);

#endif
