#include "mpi_wrapping.h"

_Thread_local char *ensio_mpi_frame;

ENSIO_PMPI_DECLARE(Type_size, (uintptr_t type, int *bytes))

uint64_t ensio_mpi_message_bytes(int64_t count, uintptr_t type)
{
    const struct ensio_mpi *mpi = ensio_mpi();
    int bytes = 0;
    type = ensio_mpi_handle(mpi, type);
    if (mpi->family == ENSIO_MPICH && type >> 26 == 0x4c000000 >> 26) /* handles of built-in types contain the size */
        bytes = type >> 8 & 0xff;
    else if (!type || type == mpi->null_type || ENSIO_PMPI(Type_size)(type, &bytes) != 0)
        return 0;
    return count > 0 && bytes > 0 ? (uint64_t)count * (uint64_t)bytes : 0;
}
