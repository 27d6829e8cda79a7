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
#define LARGE(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, bytes) \
    FORTRAN_WAITING(call, mpi_##lower##_f08ts_large_, fortran_parameters, fortran_arguments, bytes, \
                    ENSIO_BETWEEN_TWO(CALL_MPI_##call))
#else
#define BYTES C_BYTES
#define LOCAL_BYTES C_LOCAL_BYTES
#define LARGE(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, bytes) \
    C_WAITING_AS(MPI_##call##_c, call, parameters, arguments, bytes, ENSIO_BETWEEN_TWO(CALL_MPI_##call))
#endif

#define TABLE <calls/mpisync.def>
#include "large_table.h"
#define TABLE <calls/mpimsg.def>
#include "large_table.h"
#define TABLE <calls/mpimsg_later.def>
#include "large_table.h"
#define TABLE <calls/mpimsg_neighbor.def>
#include "large_table.h"
#define TABLE <calls/mpimsg_four.def>
#include "large_table.h"
