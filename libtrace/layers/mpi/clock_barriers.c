#include "clock_barriers.h"

#include <core/bounded_string.h>
#include <core/lock.h>
#include <core/settings.h>
#include <spool/spool.h>
#include <time/clock.h>

#include <string.h>

ENSIO_PMPI_DECLARE(Allreduce, (const void *mine, void *result, int count, uintptr_t type, uintptr_t operation,
                               uintptr_t communicator))
ENSIO_PMPI_DECLARE_WRAPPED(Barrier, (uintptr_t communicator))

/* The processes of a node share its clock. */
static int on_several_nodes(const struct ensio_mpi *mpi)
{
    static int several = -1; /* the same in all ranks */
    if (several < 0) {
        const uint64_t host = ensio_hash(ensio_settings.host);
        uint64_t mine[2] = {host, ~host}, most[2] = {0, 0};
        several = ENSIO_PMPI(Allreduce)(mine, most, 2, mpi->uint64, mpi->max, mpi->world) == 0 && most[0] != ~most[1];
    }
    return several;
}

void ensio_clock_barriers(const struct ensio_mpi *mpi, int at_end)
{
    struct ensio_meeting readings[ENSIO_MEETINGS];
    if (!on_several_nodes(mpi))
        return;
    ENSIO_PMPI(Barrier)(mpi->world); /* sets up connections, and synchronises late ranks */
    for (int i = 0; i < ENSIO_MEETINGS; i++) {
        readings[i].entered = ensio_ticks();
        ENSIO_PMPI(Barrier)(mpi->world);
        readings[i].left = ensio_ticks();
    }
    struct ensio_held held = ensio_lock();
    if (ensio_spool)
        memcpy(at_end ? ensio_spool->end : ensio_spool->begin, readings, sizeof readings);
    ensio_unlock(held);
}
