/* hdf5_libraries.h: which HDF5 library a call is meant for.
 *
 * Preloaded, the wrappers stand in front of every HDF5 library of the process: Python's h5py brings one of its own,
 * loaded locally, netCDF4 another, and the program may be linked to a third. Each caller gets the functions of that to
 * which the dynamic linker would have tied it. */
#ifndef ENSIO_LAYERS_HDF5_HDF5_LIBRARIES_H
#define ENSIO_LAYERS_HDF5_HDF5_LIBRARIES_H

#include "hdf5.h"

#ifdef ENSIO_PRELOAD

enum ensio_hdf5_function {
#define SYMBOL(symbol) ENSIO_FUNCTION_##symbol,
#include <calls/hdf5.def>
#undef SYMBOL
    ENSIO_HDF5_FUNCTIONS
};
#undef CALL

struct ensio_hdf5_library {
    struct ensio_hdf5 hdf5;
    void *functions[ENSIO_HDF5_FUNCTIONS]; /* NULL: the library does not have it */
};

/* The library that a caller's address means; NULL: there is none. */
const struct ensio_hdf5_library *ensio_hdf5_library(const void *caller);

#else

/* The one that the program is linked to. */
extern const struct ensio_hdf5 ensio_hdf5_linked;

#endif
#endif
