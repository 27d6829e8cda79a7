/* abi.h: calls MPI without its header, so that one build of the recorder serves every MPI.
 *
 * There are two families. Open MPI's handles are addresses of its objects. The handles of MPICH, and of all
 * implementations with its binary interface (Intel MPI, Cray MPICH, MVAPICH), are 32-bit numbers. Both fit a uintptr_t
 * in registers and 8-byte slots. The upper half of a received 32-bit handle is undefined; ensio_mpi_handle clears it.
 *
 * A file that calls MPI declares each function once, at its top, and then calls it:
 *
 *     ENSIO_PMPI_DECLARE(Comm_rank, (uintptr_t communicator, int *rank))
 *     ... ENSIO_PMPI(Comm_rank)(ensio_mpi()->world, &rank) ...
 *
 * In relinked programs this is a strong reference, which every program that calls MPI satisfies. Such a file therefore
 * belongs into libensio-mpi.a, and only programs that call MPI may pull it in. abi.c has weak references only. Files
 * that are linked into every program declare ensio_mpi weak, and check whether it is defined:
 *
 *     extern const struct ensio_mpi *ensio_mpi(void) __attribute__((weak));
 */
#ifndef ENSIO_LAYERS_MPI_ABI_H
#define ENSIO_LAYERS_MPI_ABI_H

#include <layers/wrapping.h>

#include <stdint.h>

enum ensio_mpi_family { ENSIO_OPEN_MPI = 1, ENSIO_MPICH };

#define ENSIO_MPI_STATUS_ROOM 64 /* enough for a status of any MPI */
#define ENSIO_MPI_UNDEFINED (-32766)

/* Differences between the families. */
struct ensio_mpi {
    enum ensio_mpi_family family;
    uintptr_t world, self, null_communicator, null_request, null_info, null_file;
    uintptr_t byte, int64, uint64, float64, null_type; /* data types */
    uintptr_t sum, max, min;                           /* operations */
    void *status_ignore, *in_place;                    /* MPI_STATUSES_IGNORE is MPI_STATUS_IGNORE in both */
    int comm_type_shared, any_source, proc_null, root;
    unsigned request_bytes, status_bytes; /* sizes in arrays */
    unsigned error_at;                    /* offset of MPI_ERROR in a status */
    int error_in_status;                  /* MPI_ERR_IN_STATUS */
};

/* The MPI of this process. NULL: there is none, it is not loaded yet, or it belongs to no known family. */
const struct ensio_mpi *ensio_mpi(void);

/* Within an MPI call: whether the MPI belongs to a known family. Costs a load or two. */
int ensio_mpi_known(void);

/* The handle that was passed as an argument. */
static inline uintptr_t ensio_mpi_handle(const struct ensio_mpi *mpi, uintptr_t argument)
{
    return mpi->family == ENSIO_MPICH ? (uint32_t)argument : argument;
}

/* The request at an index of the program's array. */
static inline uintptr_t ensio_mpi_request_in(const struct ensio_mpi *mpi, const void *requests, int at)
{
    return mpi->family == ENSIO_MPICH ? ((const uint32_t *)requests)[at] : ((const uintptr_t *)requests)[at];
}

#ifdef ENSIO_PRELOAD
#define ENSIO_PMPI_DECLARE(name, parameters) \
    typedef int ensio_pmpi_type_##name parameters; \
    static void *pmpi_##name;
/* NULL if the MPI of this process lacks the function. */
#define ENSIO_PMPI(name) ((ensio_pmpi_type_##name *)ensio_bound(&pmpi_##name, "PMPI_" #name))
#define ENSIO_PMPI_DECLARE_WEAK(name, parameters) ENSIO_PMPI_DECLARE(name, parameters)
#define ENSIO_PMPI_DECLARE_WRAPPED(name, parameters) ENSIO_PMPI_DECLARE(name, parameters)
#else
#define ENSIO_PMPI_DECLARE(name, parameters) extern int pmpi_##name parameters __asm__("PMPI_" #name);
#define ENSIO_PMPI(name) pmpi_##name
/* The recorder wraps this one too, and does not record its own calls. */
#define ENSIO_PMPI_DECLARE_WRAPPED(name, parameters) extern int pmpi_##name parameters __asm__("__real_PMPI_" #name);
#define ENSIO_PMPI_DECLARE_WEAK(name, parameters) \
    extern int pmpi_##name parameters __asm__("PMPI_" #name) __attribute__((weak));
#endif

#endif
