/* rank_fortran.c: the same for Fortran, whose bindings do not always call the C functions (layers/mpi/fortran.h). */
#include "census.h"
#include "fortran.h"
#include "rank.h"

#include <threads/thread.h>
#include <time/clock.h>

enum {
#define CALL(number, call, op) CALL_##call = (number),
#include <calls/mpisync.def>
};

#define RECORDED(call_, real_call) \
    ENTER_OR_PASS(thread, 1, real_call, ) \
    ERROR_OR_OWN; \
    ensio_suppress_begin(); \
    MPI_TIMED(thread, 0, real_call); \
    ensio_suppress_end(); \
    if (!ensio_finalize_is_stored) \
    ensio_store(thread, CALL_MPI_##call_, 0, -1, 0, *error ? -ENSIO_NO_ERRNO : 0, start, duration)

FORTRAN_WRAPPER(BOUND(mpi_init), (int *error))
{
    __auto_type real = FORTRAN_REAL(BOUND(mpi_init));
    ensio_census_post();
    RECORDED(Init, real(error));
    ensio_query_rank(*error);
}

FORTRAN_WRAPPER(BOUND(mpi_init_thread), (int *required, int *provided, int *error))
{
    __auto_type real = FORTRAN_REAL(BOUND(mpi_init_thread));
    ensio_census_post();
    RECORDED(Init_thread, real(required, provided, error));
    ensio_query_rank(*error);
}

FORTRAN_WRAPPER(BOUND(mpi_finalize), (int *error))
{
    __auto_type real = FORTRAN_REAL(BOUND(mpi_finalize));
    if (ensio_io_pending && !ensio_mpi_inside(ENSIO_MPI_FRAME) && ensio_ready(&ensio_thread))
        ensio_io_give_up(&ensio_thread);
    ensio_finalize_start = ensio_ticks();
    RECORDED(Finalize, real(error));
}
