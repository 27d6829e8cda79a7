/* large_counts.c: the calls of MPI 4 with large counts (MPI_Name_c), in C. They count as the calls without. They are a
 * separate object: of an older MPI, a relinked program needs none of them. */
#include "mpi_wrapping.h"
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

#define BYTES C_BYTES
#define LOCAL_BYTES C_LOCAL_BYTES

#define COUNT int64_t
#define SYNC(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, bytes)
#define COMPLETION(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, count, which, places, \
                   ended)
#define TEST(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, count, which, places, ended, \
             done)
#define OTHER(call, lower)
#define EXCHANGE(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, bytes) \
    C_WAITING_AS(MPI_##call##_c, call, parameters, arguments, bytes, ENSIO_BETWEEN_TWO(CALL_MPI_##call))
#include <calls/mpisync.def>

#define COUNT int64_t
#define SYNC(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, bytes)
#define UNCOUNTED SYNC
#define FINDING(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, found)
#define EXCHANGE(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, bytes) \
    C_WAITING_AS(MPI_##call##_c, call, parameters, arguments, bytes, 0)
#include <calls/mpimsg.def>

#define COUNT int64_t
#define SYNC(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, bytes)
#define UNCOUNTED SYNC
#define FINDING(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, found)
#define EXCHANGE(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, bytes) \
    C_WAITING_AS(MPI_##call##_c, call, parameters, arguments, bytes, 0)
#define WINDOW EXCHANGE
#include <calls/mpimsg_later.def>

#define COUNT int64_t
#define SYNC(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, bytes)
#define UNCOUNTED SYNC
#define FINDING(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, found)
#define EXCHANGE(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, bytes) \
    C_WAITING_AS(MPI_##call##_c, call, parameters, arguments, bytes, 0)
#include <calls/mpimsg_neighbor.def>

#define COUNT int64_t
#define SYNC(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, bytes)
#define UNCOUNTED SYNC
#define FINDING(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, found)
#define EXCHANGE(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, bytes) \
    C_WAITING_AS(MPI_##call##_c, call, parameters, arguments, bytes, 0)
#include <calls/mpimsg_four.def>
