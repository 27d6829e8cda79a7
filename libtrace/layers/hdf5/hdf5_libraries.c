/* hdf5_libraries.c: the functions of a loaded HDF5 library. */
#include "hdf5_libraries.h"

#include <layers/loaded_libraries.h>

#include <dlfcn.h>

static void fill(const struct ensio_library_kind *kind, void *part, void *handle, uint32_t number)
{
    static const char *const names[] = {
#define SYMBOL(symbol) #symbol,
#include <calls/hdf5.def>
#undef SYMBOL
    };
    struct ensio_hdf5_library *library = part;
    library->hdf5.number = number;
    for (size_t i = 0; i < ENSIO_HDF5_FUNCTIONS; i++)
        library->functions[i] = dlsym(handle, names[i]);
#define ASK(type, name, parameters) library->hdf5.name = (type(*) parameters)dlsym(handle, "H5" #name);
    ENSIO_HDF5_QUERIES(ASK, ASK)
}

const struct ensio_hdf5_library *ensio_hdf5_library(const void *caller)
{
    static struct ensio_library_kind kind = {.index = ENSIO_HDF5_LIBRARY,
                                             .probe = "H5Dwrite",
                                             .named = "hdf5",
                                             .part_bytes = sizeof(struct ensio_hdf5_library),
                                             .fill = fill};
    return ensio_library_of(&kind, caller);
}
