/* query_fortran.c: handles and constants of Fortran. MPICH's handles equal those of C, except for files; Open MPI has
 * conversion functions. Statuses have the same layout as in C. */
#include "query.h"

#ifdef ENSIO_PRELOAD
#define F2C_DECLARE(name) static void *f2c_##name;
#define F2C(name, handle) f2c(ensio_bound(&f2c_##name, "PMPI_" #name "_f2c"), handle)
#define DATA_DECLARE(name)
#define DATA(name) ensio_resolve_object(#name)
#else
#define F2C_DECLARE(name) extern uintptr_t PMPI_##name##_f2c(int handle) __attribute__((weak));
#define F2C(name, handle) f2c((void *)(uintptr_t)PMPI_##name##_f2c, handle)
#define DATA_DECLARE(name) extern char name[] __attribute__((weak));
#define DATA(name) ((void *)(name))
#endif

F2C_DECLARE(File)
F2C_DECLARE(Type)
F2C_DECLARE(Request)
F2C_DECLARE(Comm)
F2C_DECLARE(Info)

static uintptr_t f2c(void *function, int handle)
{
    return function ? ((uintptr_t(*)(int))(uintptr_t)function)(handle) : (uintptr_t)(unsigned)handle;
}

#define CONVERSION(lower, name) \
    uintptr_t ensio_mpi_##lower##_f2c(int handle) \
    { \
        return ensio_mpi()->family == ENSIO_MPICH ? (uintptr_t)(unsigned)handle : F2C(name, handle); \
    }

CONVERSION(type, Type)
CONVERSION(request, Request)
CONVERSION(comm, Comm)
CONVERSION(info, Info)

uintptr_t ensio_mpi_file_f2c(int handle)
{
    return F2C(File, handle);
}

/* The memory that stands for "ignore": common blocks of the bindings, under the names that compilers give them. */
DATA_DECLARE(mpi_fortran_status_ignore_)
DATA_DECLARE(mpi_fortran_statuses_ignore_)
DATA_DECLARE(MPIR_F08_MPI_STATUS_IGNORE_OBJ)
DATA_DECLARE(MPIR_F08_MPI_STATUSES_IGNORE_OBJ)
DATA_DECLARE(MPI_F_STATUS_IGNORE)
DATA_DECLARE(MPI_F_STATUSES_IGNORE)

enum { OBJECTS = 4, ALL_IGNORED = 6 };
static const void *ignored[ALL_IGNORED];
static int ignored_known;

static void find_ignored(void)
{
    const void *objects[OBJECTS] = {DATA(mpi_fortran_status_ignore_), DATA(mpi_fortran_statuses_ignore_),
                                    DATA(MPIR_F08_MPI_STATUS_IGNORE_OBJ), DATA(MPIR_F08_MPI_STATUSES_IGNORE_OBJ)};
    for (int i = 0; i < OBJECTS; i++)
        ignored[i] = objects[i];
    /* These two are pointers to it, set when Fortran initialises MPI. */
    const void *const *pointers[] = {DATA(MPI_F_STATUS_IGNORE), DATA(MPI_F_STATUSES_IGNORE)};
    for (int i = 0; i < 2; i++)
        ignored[OBJECTS + i] = pointers[i] ? *pointers[i] : NULL;
    __atomic_store_n(&ignored_known, 1, __ATOMIC_RELEASE);
}

int ensio_mpi_fortran_ignored(const void *status)
{
    if (!__atomic_load_n(&ignored_known, __ATOMIC_ACQUIRE))
        find_ignored();
    for (int i = 0; i < ALL_IGNORED; i++)
        if (ignored[i] && ignored[i] == status)
            return 1;
    return 0;
}
