/* modules.h: the loaded objects of the process: the program, shared libraries, plugins. */
#ifndef ENSIO_SITES_MODULES_H
#define ENSIO_SITES_MODULES_H

#include <core/bounded_string.h>

#include <stdint.h>

struct ensio_module {
    const char *start, *end;
    uintptr_t base;        /* address 0 of the object's file */
    const char *name;      /* its path; "": the program */
    const uint8_t *frames; /* its .eh_frame_hdr, or NULL */
};

/* Finds the object that an address lies in: 0, or -1. Takes no lock of the recorder, because a holder of the dynamic
 * linker's lock may wait for ours. */
int ensio_module_at(uintptr_t address, struct ensio_module *module);

/* Whether calls from an address in the object serve a caller outside of it: the C, C++ and Fortran run-time libraries,
 * MPI with its plugins, HDF5, NetCDF, and recorders. */
int ensio_module_serves(const struct ensio_module *module, uintptr_t address);

/* Says where the wrappers of a recorder lie that is linked into the program. */
void ensio_wrappers_serve(const char *start, const char *end);

/* Adds the build id of the object, or "-". */
void ensio_module_build_id(const struct ensio_module *module, struct ensio_string *to);

#endif
