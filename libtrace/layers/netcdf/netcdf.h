/* netcdf.h: helpers of the wrappers of NetCDF and PnetCDF, whose files and variables are alike: the file behind an id,
 * the bytes of a part of a variable. No header of either library is needed.
 *
 * Queries come after the program's call, and outside of its duration. They read what the library holds in memory. */
#ifndef ENSIO_LAYERS_NETCDF_NETCDF_H
#define ENSIO_LAYERS_NETCDF_NETCDF_H

#include <core/recorder.h>
#include <layers/library_objects.h>

#include <limits.h>
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

enum ensio_netcdf_layer { ENSIO_NETCDF, ENSIO_PNETCDF, ENSIO_NETCDF_LAYERS };

/* A library, or one of its interfaces. An id is valid only in the library that created it. */
struct ensio_netcdf {
    uint32_t number; /* number of the library in the process */
    enum ensio_netcdf_layer layer;
    int id_shift; /* bits of an id below those of the file; NetCDF has groups there */
    ENSIO_NETCDF_QUERIES(ENSIO_NETCDF_MEMBER)
    int (*inq_type)(int file, int type, char *name, size_t *bytes); /* NULL: there are no types but the usual ones */
};

/* A call of the program, from the entry of its wrapper on. There are 2,000 wrappers, so each is as small as can be: it
 * begins the call, calls the real function, and hands over what only its own arguments say. */
struct ensio_netcdf_call {
    struct ensio_thread *thread; /* NULL: the call is not recorded */
    const struct ensio_netcdf *netcdf;
    struct ensio_object file;
    uint64_t start, duration;
    uint32_t depth;
    uint16_t number;
    int error; /* errno as the library left it */
};
#define ENSIO_NETCDF_NO_FILE INT_MIN /* no id is negative */

/* Begins a call on the file `id`. `frame`: of the wrapper. */
void ensio_netcdf_begin(struct ensio_netcdf_call *call, const struct ensio_netcdf *netcdf, uint16_t number, int id,
                        void *frame);

/* The real function has returned. Returns whether the call is recorded; the following functions are for such calls
 * alone. They may change errno, except for the last, which ends the call. */
int ensio_netcdf_returned(struct ensio_netcdf_call *call);

/* The file that the call opened at `path`; `id` is NULL if that failed. Returns 0, the bytes of such a call. */
uint64_t ensio_netcdf_opened(struct ensio_netcdf_call *call, const int *id, const char *path);

/* The same for an interface whose calls give no C string: the library is asked. */
uint64_t ensio_netcdf_opened_id(struct ensio_netcdf_call *call, const int *id);

/* The call ended a file, if it returned 0; PnetCDF ends it also if it returns an error. Returns 0, its bytes. */
uint64_t ensio_netcdf_closed(struct ensio_netcdf_call *call, int id, int result);

/* At most INT64_MAX. */
uint64_t ensio_netcdf_product(uint64_t one, uint64_t other);

/* Bytes of elements of a variable, in the variable's own type; for strings and variable-length data, those of the
 * references in memory. 0: the variable is unknown. */
uint64_t ensio_netcdf_elements(struct ensio_netcdf_call *call, int file, int variable, uint64_t elements);

/* The same of a whole variable, of a region, of several regions. */
uint64_t ensio_netcdf_whole(struct ensio_netcdf_call *call, int file, int variable);
uint64_t ensio_netcdf_region(struct ensio_netcdf_call *call, int file, int variable, const int64_t *count);
uint64_t ensio_netcdf_regions(struct ensio_netcdf_call *call, int file, int variable, int regions,
                              const int64_t *const *counts);

/* Minus the errno of a failure, or 0. */
int64_t ensio_netcdf_failure(int result);

/* Stores a call that returned `result`, and returns that. */
int ensio_netcdf_end(struct ensio_netcdf_call *call, int result, uint64_t bytes);

#endif
