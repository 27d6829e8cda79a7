#include "job_banner.h"

#include "census.h"

#include <core/bounded_string.h>
#include <core/lock.h>
#include <core/rawsys.h>
#include <process/banner.h>
#include <threads/windows.h>

ENSIO_PMPI_DECLARE(Allreduce, (const void *mine, void *result, int count, uintptr_t type, uintptr_t operation,
                               uintptr_t communicator))
ENSIO_PMPI_DECLARE(Bcast, (void *data, int count, uintptr_t type, int root, uintptr_t communicator))
ENSIO_PMPI_DECLARE(Gather, (const void *mine, int count, uintptr_t type, void *all, int each, uintptr_t of_type,
                            int root, uintptr_t communicator))

static struct ensio_totals totals; /* too large for the program's stack */

static void reduce(const struct ensio_mpi *mpi, void *values, int count, uintptr_t operation)
{
    ENSIO_PMPI(Allreduce)(mpi->in_place, values, count, mpi->uint64, operation, mpi->world);
}

/* The slowest call of all ranks; of equal ones that of the lowest rank. */
static void find_slowest(const struct ensio_mpi *mpi, int rank, int tasks)
{
    uint64_t longest = totals.slowest.duration_ns, owner;
    reduce(mpi, &longest, 1, mpi->max);
    owner = totals.slowest.duration_ns == longest ? (uint64_t)rank : (uint64_t)tasks;
    reduce(mpi, &owner, 1, mpi->min);
    ENSIO_PMPI(Bcast)(&totals.slowest, sizeof totals.slowest, mpi->byte, (int)owner, mpi->world);
}

/* The number of different host names. */
static uint64_t count_hosts(const struct ensio_mpi *mpi, int rank, int tasks)
{
    uint64_t host = ensio_hash(ensio_settings.host), count = 0;
    const size_t bytes = (size_t)tasks * sizeof host;
    uint64_t *all = rank ? NULL : ensio_raw_memory(bytes);
    int fails = !rank && !all;
    ENSIO_PMPI(Bcast)(&fails, sizeof fails, mpi->byte, 0, mpi->world);
    if (fails)
        return 0;
    ENSIO_PMPI(Gather)(&host, 1, mpi->uint64, all, 1, mpi->uint64, 0, mpi->world);
    if (!all) /* the other ranks have none */
        return 0;
    for (int gap = tasks / 2; gap > 0; gap /= 2) /* sorts, so that equal names are adjacent */
        for (int i = gap; i < tasks; i++)
            for (int at = i; at >= gap && all[at - gap] > all[at]; at -= gap) {
                const uint64_t larger = all[at - gap];
                all[at - gap] = all[at];
                all[at] = larger;
            }
    for (int i = 0; i < tasks; i++)
        count += i == 0 || all[i] != all[i - 1];
    ensio_raw_unmap(all, bytes);
    return count;
}

static uint64_t add_up(const struct ensio_mpi *mpi, int rank, int tasks)
{
    uint64_t earliest = totals.begin_unix_ns ? totals.begin_unix_ns : UINT64_MAX;
    reduce(mpi, &earliest, 1, mpi->min);
    reduce(mpi, &totals.sum, ENSIO_SUMS, mpi->sum);
    reduce(mpi, &totals.most, ENSIO_MOST_VALUES, mpi->max);
    find_slowest(mpi, rank, tasks);
    totals.begin_unix_ns = earliest;
    return count_hosts(mpi, rank, tasks);
}

void ensio_job_banner(const struct ensio_mpi *mpi, int rank, int tasks)
{
    uint64_t hosts = 0;
    const int everyone = ensio_census_all_recorded();
    if (!everyone && rank != 0)
        return;
    struct ensio_held held = ensio_lock();
    ensio_windows_drain(ensio_thread.storing > 0);
    const int none = ensio_totals(&totals) != 0;
    ensio_unlock(held);
    if (none && !everyone) /* the reason was printed at the beginning */
        return;
    if (everyone)
        hosts = add_up(mpi, rank, tasks);
    if (rank == 0)
        ensio_banner_print(ensio_banner_wanted(ENSIO_BANNER_SHORT), &totals, (uint64_t)tasks, hosts, "MPI_Finalize",
                           ensio_census_why_not());
}
