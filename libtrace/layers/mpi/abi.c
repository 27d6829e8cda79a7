#include "abi.h"

#include <string.h>

ENSIO_PMPI_DECLARE_WEAK(Initialized, (int *answer))
ENSIO_PMPI_DECLARE_WEAK(Get_library_version, (char *text, int *length))

/* Open MPI's objects. */
#ifdef ENSIO_PRELOAD
#define OBJECT(name) ((uintptr_t)ensio_resolve_object(#name))
#else
#define OBJECT(name) ((uintptr_t)(name))
extern char ompi_mpi_comm_world[] __attribute__((weak));
extern char ompi_mpi_comm_self[] __attribute__((weak));
extern char ompi_mpi_comm_null[] __attribute__((weak));
extern char ompi_request_null[] __attribute__((weak));
extern char ompi_mpi_info_null[] __attribute__((weak));
extern char ompi_mpi_file_null[] __attribute__((weak));
extern char ompi_mpi_byte[] __attribute__((weak));
extern char ompi_mpi_int64_t[] __attribute__((weak));
extern char ompi_mpi_uint64_t[] __attribute__((weak));
extern char ompi_mpi_double[] __attribute__((weak));
extern char ompi_mpi_datatype_null[] __attribute__((weak));
extern char ompi_mpi_op_sum[] __attribute__((weak));
extern char ompi_mpi_op_max[] __attribute__((weak));
extern char ompi_mpi_op_min[] __attribute__((weak));
#endif

static const struct ensio_mpi mpich = {
    .family = ENSIO_MPICH,
    .world = 0x44000000,
    .self = 0x44000001,
    .null_communicator = 0x04000000,
    .null_request = 0x2c000000,
    .null_info = 0x1c000000,
    .null_file = 0,
    .byte = 0x4c00010d,
    .int64 = 0x4c00083a,
    .uint64 = 0x4c00083e,
    .float64 = 0x4c00080b,
    .null_type = 0x0c000000,
    .sum = 0x58000003,
    .max = 0x58000001,
    .min = 0x58000002,
    .status_ignore = (void *)1,
    .in_place = (void *)-1,
    .comm_type_shared = 1,
    .any_source = -2,
    .proc_null = -1,
    .root = -3,
    .request_bytes = 4,
    .status_bytes = 20,
    .error_at = 16,
    .error_in_status = 17,
};

/* There are other families with other handles; in such a process MPI is not called, and its calls are not recorded. */
static int is_mpich(void)
{
    static char text[16384]; /* MPICH may fill half of it */
    static const char *const names[] = {"MPICH", "MVAPICH", "Intel(R) MPI", "ParaStation"};
    int length = 0;
    if (!ENSIO_PMPI(Initialized))
        return 0;
    if (!ENSIO_PMPI(Get_library_version)) /* an MPI older than 2012 */
        return 1;
    if (ENSIO_PMPI(Get_library_version)(text, &length) != 0)
        return 0;
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (strstr(text, names[i]))
            return 1;
    return 0;
}

/* The first thread sets it; all of them would write the same. */
static struct ensio_mpi open_mpi;
static const struct ensio_mpi *found;

static const struct ensio_mpi *find(void)
{
    const uintptr_t world = OBJECT(ompi_mpi_comm_world);
    if (world) {
        open_mpi = (struct ensio_mpi){
            .family = ENSIO_OPEN_MPI,
            .world = world,
            .self = OBJECT(ompi_mpi_comm_self),
            .null_communicator = OBJECT(ompi_mpi_comm_null),
            .null_request = OBJECT(ompi_request_null),
            .null_info = OBJECT(ompi_mpi_info_null),
            .null_file = OBJECT(ompi_mpi_file_null),
            .byte = OBJECT(ompi_mpi_byte),
            .int64 = OBJECT(ompi_mpi_int64_t),
            .uint64 = OBJECT(ompi_mpi_uint64_t),
            .float64 = OBJECT(ompi_mpi_double),
            .null_type = OBJECT(ompi_mpi_datatype_null),
            .sum = OBJECT(ompi_mpi_op_sum),
            .max = OBJECT(ompi_mpi_op_max),
            .min = OBJECT(ompi_mpi_op_min),
            .status_ignore = NULL,
            .in_place = (void *)1,
            .comm_type_shared = 0,
            .any_source = -1,
            .proc_null = -2,
            .root = -4,
            .request_bytes = 8,
            .status_bytes = 24,
            .error_at = 8,
            .error_in_status = 18,
        };
        return &open_mpi;
    }
    return is_mpich() ? &mpich : NULL;
}

const struct ensio_mpi *ensio_mpi(void)
{
    const struct ensio_mpi *mpi = __atomic_load_n(&found, __ATOMIC_ACQUIRE);
    if (__builtin_expect(!mpi, 0)) {
        mpi = find();
        __atomic_store_n(&found, mpi, __ATOMIC_RELEASE);
    }
    return mpi;
}

int ensio_mpi_known(void)
{
    static int unknown;
    if (__builtin_expect(__atomic_load_n(&unknown, __ATOMIC_RELAXED), 0))
        return 0;
    if (ensio_mpi())
        return 1;
    __atomic_store_n(&unknown, 1, __ATOMIC_RELAXED);
    return 0;
}
