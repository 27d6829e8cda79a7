/* mpisync_profiling.c: barriers that programs and libraries call as PMPI_Barrier. The recorder's own barriers, and
 * those inside other MPI calls, are not recorded. */
#include "mpi_wrapping.h"
#include "query.h"

enum {
#define CALL(number, call, op) CALL_##call = (number),
#include <calls/mpisync.def>
};

ENSIO_WRAPPER(int, PMPI_Barrier, (uintptr_t communicator))
{
    __auto_type real = ENSIO_REAL(PMPI_Barrier);
    int result;
    ENTER_OR_PASS(thread, WANTED(Barrier), result = real(communicator), result)
    MPI_TIMED(thread, 0, result = real(communicator));
    STORE_WAIT(thread, CALL_MPI_Barrier, 0, 0, result);
    return result;
}
