/* fortran.h: names and arguments of the Fortran bindings.
 *
 * ENSIO_BINDING selects the binding: 77 (mpif.h and the module mpi), 2008 (the module mpi_f08; of Open MPI also its
 * calls with data), 2018 (the calls with data of MPICH's mpi_f08, which pass descriptors). All arguments are addresses.
 * The error code is the last argument before the hidden string lengths; in mpi_f08 it is optional.
 *
 * ENSIO_PART selects calls: 1 those without data, 2 those with data, 3 later ones with data. Each part is a separate
 * object in libensio-mpi.a, because no MPI has all of them. */
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

/* Expands `symbol`, which may be a macro. */
#define FORTRAN_WRAPPER(symbol, parameters) ENSIO_WRAPPER(void, symbol, parameters)
#define FORTRAN_REAL(symbol) ENSIO_REAL(symbol)

/* If mpi_f08 passes no error argument, a local one takes its place. */
#define ERROR_OR_OWN \
    int own_error = 0; \
    if (!error) \
    error = &own_error

/* The wrapper of a call that waits for other tasks, or sends them something. In calls with MPI_IN_PLACE the type is not
 * used, because only some bindings allow to recognise Fortran's constant by its address. */
#define FORTRAN_WAITING(call, symbol, parameters, arguments, bytes, summed_only) \
    FORTRAN_WRAPPER(symbol, parameters) \
    { \
        __auto_type real = FORTRAN_REAL(symbol); \
        ENTER_OR_PASS(thread, WANTED(call), real arguments, ) \
        ERROR_OR_OWN; \
        const uint64_t moving = (bytes); \
        MPI_TIMED(thread, 0, real arguments); \
        STORE_WAIT(thread, CALL_MPI_##call, summed_only, moving, *error); \
    }
#define FORTRAN_FINDING(call, symbol, parameters, arguments, found) \
    FORTRAN_WRAPPER(symbol, parameters) \
    { \
        __auto_type real = FORTRAN_REAL(symbol); \
        ENTER_OR_PASS(thread, WANTED(call), real arguments, ) \
        ERROR_OR_OWN; \
        MPI_TIMED(thread, 0, real arguments); \
        if (*error == 0 && (found)) \
            STORE_WAIT(thread, CALL_MPI_##call, 0, 0, *error); \
    }
#define FORTRAN_BYTES(count, type) ensio_mpi_message_bytes(*(count), ensio_mpi_type_f2c(*(type)))
#define FORTRAN_LOCAL_BYTES(data, count, type) 0

#endif
