/* fortran.h: names and arguments of the Fortran bindings.
 *
 * ENSIO_BINDING says which: 77 (mpif.h and the module mpi), 2008 (the module mpi_f08; of Open MPI also its calls with
 * data), 2018 (the calls with data of MPICH's mpi_f08, which gets descriptors of them). All arguments are addresses.
 * What C's functions return comes in the last but those lengths of strings that the compiler adds; mpi_f08 makes it
 * optional.
 *
 * ENSIO_PART 1 are the calls without data, 2 those with, 3 the later ones of these: objects of their own in
 * libensio-mpi.a, for no MPI has all of them.
 */
#ifndef ENSIO_LAYERS_MPI_FORTRAN_H
#define ENSIO_LAYERS_MPI_FORTRAN_H

#include "mpi_wrapping.h"

#if ENSIO_BINDING == 77
#define BOUND(name) name##_
#elif ENSIO_BINDING == 2008
#define BOUND(name) name##_f08_
#else
#define BOUND(name) name##_f08ts_
#endif

#ifdef ENSIO_PRELOAD
#define HAS_PART(part) ((part) == 1 ? ENSIO_BINDING != 2018 : 1)
#else
#define HAS_PART(part) (ENSIO_PART == (part))
#endif

/* With one step more, so that `symbol` may be a macro. */
#define FORTRAN_WRAPPER(symbol, parameters) ENSIO_WRAPPER(void, symbol, parameters)
#define FORTRAN_REAL(symbol) ENSIO_REAL(symbol)

/* Where mpi_f08 is not asked for the error, there is still one. */
#define ERROR_OR_OWN \
    int own_error = 0; \
    if (!error) \
    error = &own_error

#endif
