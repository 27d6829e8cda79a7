#include "loaded_netcdf.h"

#include <core/bounded_string.h>
#include <layers/wrapping.h>

#include <dlfcn.h>

static int missing(void)
{
    return -36; /* NC_EINVAL */
}

static void *query(const struct ensio_netcdf_kind *of, void *handle, const char *name)
{
    char room[64];
    struct ensio_string symbol = ensio_string_in(room, sizeof room);
    ensio_add(&symbol, of->prefix);
    ensio_add(&symbol, name);
    return dlsym(handle, room);
}

void ensio_netcdf_fill(const struct ensio_library_kind *kind, void *part, void *handle, uint32_t number)
{
    const struct ensio_netcdf_kind *of = (const void *)kind;
    struct ensio_netcdf_library *library = part;
    library->netcdf = of->identity;
    library->netcdf.number = number;
    for (uint32_t i = 0; i < of->functions; i++)
        library->functions[i] = dlsym(handle, of->names[i]);
#define ASK(name, parameters) library->netcdf.name = (int(*) parameters)query(of, handle, #name);
    ENSIO_NETCDF_QUERIES(ASK)
    library->netcdf.inq_type = (int (*)(int, int, char *, size_t *))query(of, handle, "inq_type");
}

void *ensio_netcdf_begin_loaded(struct ensio_netcdf_call *call, struct ensio_netcdf_kind *kind, uint32_t which, int id,
                                void *frame, const void *caller)
{
    const struct ensio_netcdf_library *library = ensio_library_of(&kind->kind, caller);
    const uint32_t function = which >> 16;
    if (ENSIO_UNLIKELY(!library || !library->functions[function])) {
        void *other = ensio_resolve(kind->names[function]);
        call->thread = NULL;
        return other ? other : (void *)(uintptr_t)missing;
    }
    ensio_netcdf_begin(call, &library->netcdf, (uint16_t)which, id, frame);
    return library->functions[function];
}
