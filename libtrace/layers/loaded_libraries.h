/* loaded_libraries.h: the I/O library that a call belongs to, in the preload library.
 *
 * Preloaded wrappers precede every HDF5 and NetCDF library of the process. Python's h5py loads one HDF5 locally,
 * netCDF4 another, and the program may be linked with a third. Each caller gets the functions that the dynamic linker
 * would have bound it to. */
#ifndef ENSIO_LAYERS_LOADED_LIBRARIES_H
#define ENSIO_LAYERS_LOADED_LIBRARIES_H

#include <stddef.h>
#include <stdint.h>

/* HDF5, NetCDF or PnetCDF. A process may have several libraries of a kind. */
enum { ENSIO_HDF5_LIBRARY, ENSIO_NETCDF_LIBRARY, ENSIO_PNETCDF_LIBRARY, ENSIO_LIBRARY_KINDS };
struct ensio_library_kind {
    int index;
    const char *probe; /* a function that every library of the kind has, and that is wrapped */
    const char *named; /* in the file names of libraries with versioned symbols */
    size_t part_bytes;
    /* Fills a library's part from a handle of dlopen. Numbers of libraries are unique in the process. */
    void (*fill)(const struct ensio_library_kind *kind, void *part, void *handle, uint32_t number);
    const struct ensio_loaded *libraries; /* NULL at first, like the next */
    const struct ensio_caller *callers;
};

/* The part of the library for a caller's address, or NULL. An address in the recorder belongs to the library that this
 * thread has called. */
const void *ensio_library_of(struct ensio_library_kind *kind, const void *caller);

#endif
