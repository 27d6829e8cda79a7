/* abi.h: calling MPI without its header, so that one build of the recorder serves every MPI.
 *
 * There are two families. Open MPI's handles are addresses of its objects; those of MPICH and of all that keep to its
 * binary interface (Intel MPI, Cray MPICH, MVAPICH) are 32-bit numbers. Both travel in the registers and 8-byte slots
 * of a uintptr_t. A number that was received so may have anything in its upper half: ensio_mpi_handle clears it.
 *
 * A file that calls MPI names each function once, at its top, and then calls it:
 *
 *     ENSIO_PMPI_DECLARE(Comm_rank, (uintptr_t communicator, int *rank))
 *     ... ENSIO_PMPI(Comm_rank)(ensio_mpi()->world, &rank) ...
 *
 * In relinked programs that is a plain reference, which is satisfied wherever the program calls MPI: such a file
 * belongs into libensio-mpi.a, and must be one that only programs of that kind pull in. This file has weak references
 * alone, so that those without MPI may call ensio_mpi too. What is linked into every program declares it weak, and
 * looks whether it is there:
 *
 *     extern const struct ensio_mpi *ensio_mpi(void) __attribute__((weak));
 */
#ifndef ENSIO_LAYERS_MPI_ABI_H
#define ENSIO_LAYERS_MPI_ABI_H

#include <layers/wrapping.h>

#include <stdint.h>

enum ensio_mpi_family { ENSIO_OPEN_MPI = 1, ENSIO_MPICH };

#define ENSIO_MPI_STATUS_ROOM 64 /* bytes that are enough for a status of any MPI */
#define ENSIO_MPI_UNDEFINED (-32766)

/* What differs between the families. */
struct ensio_mpi {
    enum ensio_mpi_family family;
    uintptr_t world, self, null_communicator, null_request, null_info, null_file;
    uintptr_t byte, int64, uint64, float64, null_type; /* data types */
    uintptr_t sum, max, min;                           /* operations */
    void *status_ignore, *in_place;                    /* MPI_STATUSES_IGNORE is MPI_STATUS_IGNORE in both */
    int comm_type_shared, any_source, proc_null, root;
    unsigned request_bytes, status_bytes; /* in arrays of them */
    unsigned error_at;                    /* bytes from the beginning of a status to its MPI_ERROR */
    int error_in_status;                  /* MPI_ERR_IN_STATUS */
};

/* The MPI of this process; NULL: there is none, or none was loaded yet, or it is of neither family. */
const struct ensio_mpi *ensio_mpi(void);

/* In a call of MPI, where there must be one: whether it is of one of the families. Costs a load or two. */
int ensio_mpi_known(void);

/* A handle as it was meant, of one that came as an argument. */
static inline uintptr_t ensio_mpi_handle(const struct ensio_mpi *mpi, uintptr_t argument)
{
    return mpi->family == ENSIO_MPICH ? (uint32_t)argument : argument;
}

/* The request at a place in the program's array of them. */
static inline uintptr_t ensio_mpi_request_in(const struct ensio_mpi *mpi, const void *requests, int at)
{
    return mpi->family == ENSIO_MPICH ? ((const uint32_t *)requests)[at] : ((const uintptr_t *)requests)[at];
}

/* Whether MPI may be called: between MPI_Init and MPI_Finalize. */
int ensio_mpi_usable(void);

#ifdef ENSIO_PRELOAD
#define ENSIO_PMPI_DECLARE(name, parameters) \
    typedef int ensio_pmpi_type_##name parameters; \
    static void *pmpi_##name;
/* NULL where the MPI of this process has no such function. */
#define ENSIO_PMPI(name) ((ensio_pmpi_type_##name *)ensio_bound(&pmpi_##name, "PMPI_" #name))
#define ENSIO_PMPI_DECLARE_WEAK(name, parameters) ENSIO_PMPI_DECLARE(name, parameters)
#else
#define ENSIO_PMPI_DECLARE(name, parameters) extern int pmpi_##name parameters __asm__("PMPI_" #name);
#define ENSIO_PMPI(name) pmpi_##name
#define ENSIO_PMPI_DECLARE_WEAK(name, parameters) \
    extern int pmpi_##name parameters __asm__("PMPI_" #name) __attribute__((weak));
#endif

#endif
