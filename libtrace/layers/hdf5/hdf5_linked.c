/* hdf5_linked.c: the query functions of the HDF5 library that a relinked program is linked with. */
#include "hdf5.h"

#define QUERY(type, name, parameters) extern type H5##name parameters;
#define NEWER_QUERY(type, name, parameters) extern type H5##name parameters __attribute__((weak));
ENSIO_HDF5_QUERIES(QUERY, NEWER_QUERY)

#define MEMBER(type, name, parameters) .name = H5##name,
extern const struct ensio_hdf5 ensio_hdf5_linked;
const struct ensio_hdf5 ensio_hdf5_linked = {ENSIO_HDF5_QUERIES(MEMBER, MEMBER).number = ENSIO_LINKED_HDF5};

extern const void *const ensio_function_of_hdf5; /* peer_recorder.c */
const void *const ensio_function_of_hdf5 = (const void *)H5Iget_type;
