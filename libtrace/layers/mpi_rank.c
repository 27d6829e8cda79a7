#include "mpi_rank.h"

#include "everyone.h"
#include "mpi_abi.h"
#include "mpi_end.h"

#include <calls/mpi_wrapping.h>
#include <core/life.h>
#include <core/thread.h>

#include <errno.h>

enum {
#define CALL(number, call, op) CALL_##call = (number),
#include <calls/mpisync.def>
};

ENSIO_PMPI_DECLARE(Comm_rank, (uintptr_t communicator, int *rank))
ENSIO_PMPI_DECLARE(Comm_size, (uintptr_t communicator, int *size))

void ensio_ask_rank(int status)
{
    const struct ensio_mpi *mpi = ensio_mpi();
    int rank = -1, tasks = 0;
    if (status == 0 && mpi && ENSIO_PMPI(Comm_rank)(mpi->world, &rank) == 0 &&
        ENSIO_PMPI(Comm_size)(mpi->world, &tasks) == 0) {
        ensio_set_rank(rank, tasks);
        ensio_mpi_begins(rank, tasks);
    }
}

uint64_t ensio_finalize_start;
int ensio_finalize_is_stored;

void ensio_finalize_store(void)
{
    struct ensio_thread *thread = &ensio_thread;
    const uint32_t depth = thread->depth;
    if (!ensio_finalize_start || ensio_finalize_is_stored)
        return;
    ensio_finalize_is_stored = 1;
    thread->depth = 0; /* as it was before that call, which no other is around */
    ensio_store(thread, CALL_MPI_Finalize, 0, -1, 0, 0, ensio_finalize_start, ensio_ticks() - ensio_finalize_start);
    thread->depth = depth;
}

/* What MPI does in here is left out (ensio_hide). */
#define HIDDEN(call) \
    do { \
        ensio_hide(); \
        call; \
        ensio_go_on(); \
    } while (0)

#define RECORDED(call_, real_call) \
    int result; \
    ENTER_OR_RETURN(thread, 1, HIDDEN(result = (real_call)), result) \
    MPI_TIMED(thread, 0, HIDDEN(result = (real_call))); \
    if (!ensio_finalize_is_stored) \
        ensio_store(thread, CALL_MPI_##call_, 0, -1, 0, -(int64_t)(result ? EIO : 0), start, duration)

ENSIO_WRAPPER(int, MPI_Init, (int *count, char ***arguments))
{
    ensio_everyone_call();
    RECORDED(Init, ENSIO_REAL(MPI_Init)(count, arguments));
    ensio_ask_rank(result);
    return result;
}

ENSIO_WRAPPER(int, MPI_Init_thread, (int *count, char ***arguments, int required, int *provided))
{
    ensio_everyone_call();
    RECORDED(Init_thread, ENSIO_REAL(MPI_Init_thread)(count, arguments, required, provided));
    ensio_ask_rank(result);
    return result;
}

ENSIO_WRAPPER(int, MPI_Finalize, (void))
{
    if (ensio_io_pending && !ensio_mpi_inside(ENSIO_MPI_FRAME) && ensio_ready(&ensio_thread))
        ensio_io_give_up(&ensio_thread);
    ensio_finalize_start = ensio_ticks();
    RECORDED(Finalize, ENSIO_REAL(MPI_Finalize)());
    return result;
}
