/* loaded_netcdf.h: the NetCDF or PnetCDF library that a call belongs to, in the preload library. */
#ifndef ENSIO_LAYERS_NETCDF_LOADED_NETCDF_H
#define ENSIO_LAYERS_NETCDF_LOADED_NETCDF_H

#include "netcdf.h"

#include <layers/loaded_libraries.h>

struct ensio_netcdf_library {
    struct ensio_netcdf netcdf;
    void *functions[]; /* NULL: the library lacks it */
};

struct ensio_netcdf_kind {
    struct ensio_library_kind kind;
    struct ensio_netcdf identity; /* its layer and the shape of its ids */
    const char *prefix;           /* of its functions */
    const char *const *names;     /* of those that are wrapped */
    uint32_t functions;           /* their number */
};

void ensio_netcdf_fill(const struct ensio_library_kind *kind, void *part, void *handle, uint32_t number);

/* Begins a call and returns the function to call. `which`: the index of its name times 2^16, plus the number of the
 * call; `caller`: the wrapper's return address. A function of the same name that belongs to no such library is called
 * as it is. */
void *ensio_netcdf_begin_loaded(struct ensio_netcdf_call *call, struct ensio_netcdf_kind *kind, uint32_t which, int id,
                                void *frame, const void *caller);

#endif
