/* hdf5_linked.c: the questions to the HDF5 library that a relinked program is linked to. */
#include "hdf5.h"

#define QUESTION(type, name, parameters) extern type H5##name parameters;
#define NEWER_QUESTION(type, name, parameters) extern type H5##name parameters __attribute__((weak));
ENSIO_HDF5_QUESTIONS(QUESTION, NEWER_QUESTION)

#define MEMBER(type, name, parameters) .name = H5##name,
extern const struct ensio_hdf5 ensio_hdf5_linked;
const struct ensio_hdf5 ensio_hdf5_linked = {ENSIO_HDF5_QUESTIONS(MEMBER, MEMBER)};
