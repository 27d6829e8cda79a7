#include "rank.h"

#include "abi.h"
#include "census.h"
#include "finalize.h"
#include "mpi_wrapping.h"

#include <process/lifecycle.h>
#include <threads/thread.h>
#include <time/clock.h>

enum {
#define CALL(number, call, op) CALL_##call = (number),
#include <calls/mpisync.def>
};

ENSIO_PMPI_DECLARE(Comm_rank, (uintptr_t communicator, int *rank))
ENSIO_PMPI_DECLARE(Comm_size, (uintptr_t communicator, int *size))

#ifndef ENSIO_PRELOAD
extern const void *const ensio_function_of_mpi; /* peer_recorder.c */
const void *const ensio_function_of_mpi = (const void *)pmpi_Comm_rank;
#endif

void ensio_query_rank(int status)
{
    const struct ensio_mpi *mpi = ensio_mpi();
    int rank = -1, tasks = 0;
    if (status == 0 && mpi && ENSIO_PMPI(Comm_rank)(mpi->world, &rank) == 0 &&
        ENSIO_PMPI(Comm_size)(mpi->world, &tasks) == 0) {
        ensio_set_rank(rank, tasks);
        ensio_mpi_initialized(rank, tasks);
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
    thread->depth = 0; /* the depth before that call, which is not nested */
    ensio_store(thread, CALL_MPI_Finalize, 0, -1, 0, 0, ensio_finalize_start, ensio_ticks() - ensio_finalize_start);
    thread->depth = depth;
}

/* Calls that MPI makes in here are not recorded. */
#define SUPPRESSED(call) \
    do { \
        ensio_suppress_begin(); \
        call; \
        ensio_suppress_end(); \
    } while (0)

#define RECORDED(call_, real_call) \
    int result; \
    ENTER_OR_PASS(thread, 1, SUPPRESSED(result = (real_call)), result) \
    MPI_TIMED(thread, 0, SUPPRESSED(result = (real_call))); \
    if (!ensio_finalize_is_stored) \
    ensio_store(thread, CALL_MPI_##call_, 0, -1, 0, result ? -ENSIO_NO_ERRNO : 0, start, duration)

/* If a tool calls PMPI_X, the outer one of the two wrappers records; after such a tool, the only one does. */
#define INIT(symbol) \
    ENSIO_WRAPPER(int, symbol, (int *count, char ***arguments)) \
    { \
        ensio_census_post(); \
        RECORDED(Init, ENSIO_REAL(symbol)(count, arguments)); \
        ensio_query_rank(result); \
        return result; \
    }

#define INIT_THREAD(symbol) \
    ENSIO_WRAPPER(int, symbol, (int *count, char ***arguments, int required, int *provided)) \
    { \
        ensio_census_post(); \
        RECORDED(Init_thread, ENSIO_REAL(symbol)(count, arguments, required, provided)); \
        ensio_query_rank(result); \
        return result; \
    }

#define FINALIZE(symbol) \
    ENSIO_WRAPPER(int, symbol, (void)) \
    { \
        if (!ensio_mpi_inside(ENSIO_MPI_FRAME)) { \
            if (ensio_io_pending && ensio_ready(&ensio_thread)) \
                ensio_io_give_up(&ensio_thread); \
            ensio_finalize_start = ensio_ticks(); \
        } \
        RECORDED(Finalize, ENSIO_REAL(symbol)()); \
        return result; \
    }

INIT(MPI_Init)
INIT_THREAD(MPI_Init_thread)
FINALIZE(MPI_Finalize)

#ifdef ENSIO_PRELOAD
INIT(PMPI_Init)
INIT_THREAD(PMPI_Init_thread)
FINALIZE(PMPI_Finalize)
#endif
