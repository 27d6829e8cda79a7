/* mpi_rank.c: one build serves every MPI. Of all that differs between them, only the handle of MPI_COMM_WORLD matters here:
 * Open MPI's is the address of an object, that of MPICH and its relatives a fixed number. */
#include "mpi_rank.h"

#include <calls/wrapping.h>
#include <core/life.h>
#include <core/thread.h>

#include <stdint.h>

#define MPICH_COMM_WORLD 0x44000000

#ifdef ENSIO_PRELOAD
#define FUNCTION(name) ((int (*)(uintptr_t, int *))ensio_resolve(#name))
#define OPEN_MPI_WORLD ensio_resolve_object("ompi_mpi_comm_world")
#else
extern int PMPI_Comm_rank(uintptr_t, int *);
extern int PMPI_Comm_size(uintptr_t, int *);
extern char ompi_mpi_comm_world[] __attribute__((weak));
#define FUNCTION(name) name
#define OPEN_MPI_WORLD ompi_mpi_comm_world
#endif

void ensio_ask_rank(int status)
{
    uintptr_t world = (uintptr_t)OPEN_MPI_WORLD;
    int rank = -1, tasks = 0;
    if (!world)
        world = MPICH_COMM_WORLD;
    if (status == 0 && FUNCTION(PMPI_Comm_rank)(world, &rank) == 0 && FUNCTION(PMPI_Comm_size)(world, &tasks) == 0)
        ensio_set_rank(rank, tasks);
}

ENSIO_WRAPPER(int, MPI_Init, (int *count, char ***arguments))
{
    ensio_hide();
    int status = ENSIO_REAL(MPI_Init)(count, arguments);
    ensio_go_on();
    ensio_ask_rank(status);
    return status;
}

ENSIO_WRAPPER(int, MPI_Init_thread, (int *count, char ***arguments, int required, int *provided))
{
    ensio_hide();
    int status = ENSIO_REAL(MPI_Init_thread)(count, arguments, required, provided);
    ensio_go_on();
    ensio_ask_rank(status);
    return status;
}

ENSIO_WRAPPER(int, MPI_Finalize, (void))
{
    ensio_hide();
    int status = ENSIO_REAL(MPI_Finalize)();
    ensio_go_on();
    return status;
}
