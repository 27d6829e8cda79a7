/* Compares what the recorder knows of an MPI without its header with that header. */
#include <layers/mpi/abi.h>

#include <mpi.h>
#include <stddef.h>
#include <stdio.h>

ENSIO_PMPI_DECLARE(Comm_compare, (uintptr_t one, uintptr_t other, int *result))

static int wrong;

static void same(const char *what, uintptr_t own, uintptr_t header)
{
    if (own != header) {
        printf("%s is %#lx, not %#lx\n", what, (unsigned long)header, (unsigned long)own);
        wrong = 1;
    }
}

#define SAME(member, constant) same(#constant, (uintptr_t)mpi->member, (uintptr_t)(constant))

int main(int count, char **arguments)
{
    const struct ensio_mpi *mpi = ensio_mpi();
    int result;
    MPI_Init(&count, &arguments);
    if (!mpi || ENSIO_PMPI(Comm_compare)(mpi->world, mpi->self, &result) != MPI_SUCCESS)
        return 3;
    SAME(world, MPI_COMM_WORLD);
    SAME(self, MPI_COMM_SELF);
    SAME(null_communicator, MPI_COMM_NULL);
    SAME(null_request, MPI_REQUEST_NULL);
    SAME(null_info, MPI_INFO_NULL);
    SAME(null_file, MPI_FILE_NULL);
    SAME(byte, MPI_BYTE);
    SAME(int64, MPI_INT64_T);
    SAME(uint64, MPI_UINT64_T);
    SAME(float64, MPI_DOUBLE);
    SAME(null_type, MPI_DATATYPE_NULL);
    SAME(sum, MPI_SUM);
    SAME(max, MPI_MAX);
    SAME(min, MPI_MIN);
    SAME(status_ignore, MPI_STATUS_IGNORE);
    SAME(status_ignore, MPI_STATUSES_IGNORE);
    SAME(in_place, MPI_IN_PLACE);
    SAME(comm_type_shared, MPI_COMM_TYPE_SHARED);
    SAME(any_source, MPI_ANY_SOURCE);
    SAME(proc_null, MPI_PROC_NULL);
    SAME(root, MPI_ROOT);
    SAME(request_bytes, sizeof(MPI_Request));
    SAME(status_bytes, sizeof(MPI_Status));
    SAME(error_at, offsetof(MPI_Status, MPI_ERROR));
    SAME(error_in_status, MPI_ERR_IN_STATUS);
    same("MPI_UNDEFINED", (uintptr_t)ENSIO_MPI_UNDEFINED, (uintptr_t)MPI_UNDEFINED);
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    same("a request of two", ensio_mpi_request_in(mpi, requests, 1), mpi->null_request);
    MPI_Finalize();
    return wrong;
}
