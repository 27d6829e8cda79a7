/* mpi_rank_fortran.c: the same for Fortran, whose bindings need not come by the C functions. Each linked program needs only
 * those of the bindings that it was written for, hence one object for mpif.h and one for
 * mpi_f08 (ENSIO_FORTRAN_2008). */
#include "mpi_rank.h"

#include <calls/wrapping.h>
#include <core/thread.h>

#include <stddef.h>

#define FORTRAN_INIT(symbol) \
    ENSIO_WRAPPER(void, symbol, (int *error)) \
    { \
        int own = 0; /* mpi_f08 makes the argument optional */ \
        ensio_hide(); \
        ENSIO_REAL(symbol)(error ? error : &own); \
        ensio_go_on(); \
        ensio_ask_rank(error ? *error : own); \
    }

#define FORTRAN_INIT_THREAD(symbol) \
    ENSIO_WRAPPER(void, symbol, (int *required, int *provided, int *error)) \
    { \
        int own = 0; \
        ensio_hide(); \
        ENSIO_REAL(symbol)(required, provided, error ? error : &own); \
        ensio_go_on(); \
        ensio_ask_rank(error ? *error : own); \
    }

#define FORTRAN_FINALIZE(symbol) \
    ENSIO_WRAPPER(void, symbol, (int *error)) \
    { \
        ensio_hide(); \
        ENSIO_REAL(symbol)(error); \
        ensio_go_on(); \
    }

#if defined(ENSIO_PRELOAD) || !defined(ENSIO_FORTRAN_2008)
FORTRAN_INIT(mpi_init_)
FORTRAN_INIT_THREAD(mpi_init_thread_)
FORTRAN_FINALIZE(mpi_finalize_)
#endif
#if defined(ENSIO_PRELOAD) || defined(ENSIO_FORTRAN_2008)
FORTRAN_INIT(mpi_init_f08_)
FORTRAN_INIT_THREAD(mpi_init_thread_f08_)
FORTRAN_FINALIZE(mpi_finalize_f08_)
#endif
