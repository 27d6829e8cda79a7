#include "query.h"

#include <ensio/event.h>
#include <errno.h>

ENSIO_PMPI_DECLARE(Error_class, (int code, int *class))
ENSIO_PMPI_DECLARE(Get_elements_x, (const void *status, uintptr_t type, int64_t *count))
ENSIO_PMPI_DECLARE(Type_size_x, (uintptr_t type, int64_t *bytes))

int64_t ensio_mpi_type_bytes(uintptr_t type)
{
    const struct ensio_mpi *mpi = ensio_mpi();
    int64_t bytes = 0;
    type = ensio_mpi_handle(mpi, type);
    if (!type || type == mpi->null_type || ENSIO_PMPI(Type_size_x)(type, &bytes) != 0)
        return 0;
    return bytes > 0 ? bytes : 0;
}

/* The numbers of an error class in Open MPI and in MPICH, and the corresponding errno. */
static const struct {
    int class[2];
    int error;
} errors[] = {
    {{20, 20}, EACCES},     /* MPI_ERR_ACCESS */
    {{21, 21}, EINVAL},     /* MPI_ERR_AMODE */
    {{23, 22}, EINVAL},     /* MPI_ERR_BAD_FILE: invalid file name */
    {{28, 25}, EEXIST},     /* MPI_ERR_FILE_EXISTS */
    {{29, 26}, EBUSY},      /* MPI_ERR_FILE_IN_USE */
    {{30, 27}, EBADF},      /* MPI_ERR_FILE: invalid file handle */
    {{39, 34}, ENOMEM},     /* MPI_ERR_NO_MEM */
    {{41, 36}, ENOSPC},     /* MPI_ERR_NO_SPACE */
    {{42, 37}, ENOENT},     /* MPI_ERR_NO_SUCH_FILE */
    {{44, 39}, EDQUOT},     /* MPI_ERR_QUOTA */
    {{45, 40}, EROFS},      /* MPI_ERR_READ_ONLY */
    {{51, 43}, EINVAL},     /* MPI_ERR_UNSUPPORTED_DATAREP */
    {{52, 44}, EOPNOTSUPP}, /* MPI_ERR_UNSUPPORTED_OPERATION */
    {{1, 1}, EFAULT},       /* MPI_ERR_BUFFER */
    {{2, 2}, EINVAL},       /* MPI_ERR_COUNT */
    {{3, 3}, EINVAL},       /* MPI_ERR_TYPE */
    {{5, 5}, EINVAL},       /* MPI_ERR_COMM */
    {{13, 12}, EINVAL},     /* MPI_ERR_ARG */
    {{15, 14}, EMSGSIZE},   /* MPI_ERR_TRUNCATE */
};

int ensio_mpi_errno(int code)
{
    int class = 0;
    if (code == 0)
        return 0;
    if (ENSIO_PMPI(Error_class)(code, &class) != 0)
        return ENSIO_NO_ERRNO;
    const int family = ensio_mpi()->family == ENSIO_MPICH;
    for (unsigned i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].class[family] == class)
            return errors[i].error;
    return ENSIO_NO_ERRNO;
}

int64_t ensio_mpi_moved(int result, const char *status, int in_array)
{
    const struct ensio_mpi *mpi = ensio_mpi();
    int64_t bytes = 0;
    int class = 0;
    if (result != 0 && in_array && ENSIO_PMPI(Error_class)(result, &class) == 0 && class == mpi->error_in_status)
        result = *(const int *)(const void *)(status + mpi->error_at);
    if (result != 0)
        return -(int64_t)ensio_mpi_errno(result);
    return ENSIO_PMPI(Get_elements_x)(status, mpi->byte, &bytes) == 0 && bytes > 0 ? bytes : 0;
}
