#include "finalize.h"

#include "abi.h"
#include "census.h"
#include "clock_barriers.h"
#include "job_banner.h"
#include "jobfile.h"
#include "rank.h"

#include <core/lock.h>
#include <core/rawsys.h>
#include <core/recorder.h>
#include <jobfile/process_file.h>
#include <spool/spool.h>
#include <threads/thread.h>

#include <stddef.h>
#include <string.h>

typedef int copy_attribute(uintptr_t communicator, int key, void *extra, void *value, void *copy, int *copied);
typedef int delete_attribute(uintptr_t communicator, int key, void *value, void *extra);
ENSIO_PMPI_DECLARE(Comm_create_keyval, (copy_attribute *, delete_attribute *, int *key, void *extra))
ENSIO_PMPI_DECLARE(Comm_free_keyval, (int *key))
ENSIO_PMPI_DECLARE(Comm_set_attr, (uintptr_t communicator, int key, void *value))
ENSIO_PMPI_DECLARE(Comm_get_parent, (uintptr_t * parent))
ENSIO_PMPI_DECLARE(Get_library_version, (char *text, int *length))
ENSIO_PMPI_DECLARE_WRAPPED(Barrier, (uintptr_t communicator))

static int world_rank, world_tasks;

static int not_copied(uintptr_t communicator, int key, void *extra, void *value, void *copy, int *copied)
{
    *copied = 0;
    return 0;
}

static void store_property(const char *text)
{
    struct ensio_held held = ensio_lock();
    if (ensio_spool)
        ensio_text_store(ENSIO_TEXT_PROPERTIES, 0, text, (uint32_t)strlen(text) + 1);
    ensio_unlock(held);
}

/* Runs within the real MPI_Finalize. Collective work here depends on ensio_census_all_recorded. */
static int at_end(uintptr_t communicator, int key, void *value, void *extra)
{
    if (ensio_process->generation != ensio_raw_pid())
        return 0;
    ensio_suppress_begin();
    store_property("mpi_end=reached");
    ensio_is_unfinalized_rank = 0;
    if (ensio_census_all_recorded()) {
        ensio_clock_barriers(ensio_mpi(), 1);
        ENSIO_PMPI(Barrier)(ensio_mpi()->world); /* up to here, the program's ranks wait for each other */
        ensio_finalize_store();
    }
    ensio_job_banner(ensio_mpi(), world_rank, world_tasks);
    ensio_job_file_write();
    ensio_suppress_end();
    return 0;
}

/* The first line of the library's version; MPICH continues for kilobytes. */
static void store_version(void)
{
    static char text[16384] = "mpi="; /* MPICH may fill half of it */
    int length = 0;
    if (ENSIO_PMPI(Get_library_version)(text + 4, &length) != 0)
        return;
    text[4 + strcspn(text + 4, "\n")] = '\0';
    store_property(text);
}

static int was_spawned(const struct ensio_mpi *mpi)
{
    uintptr_t parent = mpi->null_communicator;
    return ENSIO_PMPI(Comm_get_parent)(&parent) != 0 || ensio_mpi_handle(mpi, parent) != mpi->null_communicator;
}

void ensio_mpi_initialized(int rank, int tasks)
{
    static int begun;
    const struct ensio_mpi *mpi = ensio_mpi();
    int key;
    if (begun || !mpi || !ensio_process->generation)
        return;
    begun = 1;
    world_rank = rank;
    world_tasks = tasks;
    ensio_suppress_begin();
    store_version();
    if (ENSIO_PMPI(Comm_create_keyval)(not_copied, at_end, &key, NULL) == 0) {
        const int told = ENSIO_PMPI(Comm_set_attr)(mpi->self, key, NULL) == 0;
        ensio_is_unfinalized_rank = told;
        if (told)
            store_property("mpi_end=missing");
        if (told && ensio_census_agree(rank, tasks, was_spawned(mpi)) && tasks > 1) {
            ENSIO_PMPI(Barrier)(mpi->world);
            ensio_census_cleanup(0);
            ensio_clock_barriers(mpi, 0);
            ENSIO_PMPI(Barrier)(mpi->world);
            if (rank == 0)
                ensio_census_cleanup(1);
        }
        ENSIO_PMPI(Comm_free_keyval)(&key); /* it is freed when the attribute is deleted */
    }
    ensio_suppress_end();
}
