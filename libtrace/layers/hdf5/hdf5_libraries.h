/* hdf5_libraries.h: the HDF5 library that a call belongs to. */
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
    void *functions[ENSIO_HDF5_FUNCTIONS]; /* NULL: the library lacks it */
};

/* The library for a caller's address, or NULL. */
const struct ensio_hdf5_library *ensio_hdf5_library(const void *caller);

#else

/* The library that the program is linked with. */
extern const struct ensio_hdf5 ensio_hdf5_linked;

#endif
#endif
