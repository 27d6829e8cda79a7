/* mpisync_profiling_fortran.c: the same for Fortran, by the name of each binding (ENSIO_SYMBOL). Relinked programs need
 * it, because the linker does not see that a shared library calls PMPI_Barrier in it. */
#include "fortran.h"
#include "query.h"

enum {
#define CALL(number, call, op) CALL_##call = (number),
#include <calls/mpisync.def>
};

FORTRAN_WRAPPER(ENSIO_SYMBOL, (void *communicator, int *error))
{
    __auto_type real = FORTRAN_REAL(ENSIO_SYMBOL);
    ENTER_OR_PASS(thread, WANTED(Barrier), real(communicator, error), )
    ERROR_OR_OWN;
    MPI_TIMED(thread, 0, real(communicator, error));
    STORE_WAIT(thread, CALL_MPI_Barrier, 0, 0, *error);
}
