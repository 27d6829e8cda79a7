/* large_counts.c: the calls of MPI 4 with large counts, in C (MPI_Name_c) and, with a binding, in mpi_f08 as MPICH
 * names them (mpi_name_f08ts_large_). They count as the calls without. They are separate objects: of an older MPI, a
 * relinked program needs none of them. */
#ifdef ENSIO_BINDING
#include "fortran.h"
#else
#include "mpi_wrapping.h"
#endif
#include "query.h"

enum {
#define CALL(number, call, op) CALL_##call = (number),
#include <calls/mpisync.def>
#include <calls/mpimsg.def>
#include <calls/mpimsg_later.def>
#include <calls/mpimsg_neighbor.def>
#include <calls/mpimsg_four.def>
};
#undef CALL

#ifdef ENSIO_BINDING
#define BYTES FORTRAN_BYTES
#define LOCAL_BYTES FORTRAN_LOCAL_BYTES
#define LARGE(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, bytes, summed_only) \
    FORTRAN_WAITING(call, mpi_##lower##_f08ts_large_, fortran_parameters, fortran_arguments, bytes, summed_only)
#else
#define BYTES C_BYTES
#define LOCAL_BYTES C_LOCAL_BYTES
#define LARGE(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, bytes, summed_only) \
    C_WAITING_AS(MPI_##call##_c, call, parameters, arguments, bytes, summed_only)
#endif

#define COUNT int64_t
#define SYNC(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, bytes)
#define COMPLETION(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, count, which, places, \
                   ended)
#define TEST(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, count, which, places, ended, \
             done)
#define OTHER(call, lower)
#define EXCHANGE(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, bytes) \
    LARGE(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, bytes, \
          ENSIO_BETWEEN_TWO(CALL_MPI_##call))
#include <calls/mpisync.def>

#define COUNT int64_t
#define SYNC(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, bytes)
#define UNCOUNTED SYNC
#define FINDING(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, found)
#define EXCHANGE(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, bytes) \
    LARGE(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, bytes, 0)
#include <calls/mpimsg.def>

/* Windows have large counts too; in mpi_f08 they have other names. */
#define COUNT int64_t
#define SYNC(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, bytes)
#define UNCOUNTED SYNC
#define FINDING(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, found)
#define EXCHANGE(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, bytes) \
    LARGE(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, bytes, 0)
#ifdef ENSIO_BINDING
#define WINDOW SYNC
#else
#define WINDOW EXCHANGE
#endif
#include <calls/mpimsg_later.def>

#define COUNT int64_t
#define SYNC(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, bytes)
#define UNCOUNTED SYNC
#define FINDING(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, found)
#define EXCHANGE(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, bytes) \
    LARGE(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, bytes, 0)
#include <calls/mpimsg_neighbor.def>

#define COUNT int64_t
#define SYNC(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, bytes)
#define UNCOUNTED SYNC
#define FINDING(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, found)
#define EXCHANGE(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, bytes) \
    LARGE(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, bytes, 0)
#include <calls/mpimsg_four.def>
