/* mpimsg_wrappers.c: the wrappers of messages in C, generated from a table of the layer (ENSIO_TABLE): those of MPI 1
 * and 2, those of MPI 3, and those of MPI 4 are separate objects. */
#include "mpi_wrapping.h"
#include "query.h"

enum {
#define CALL(number, call, op) CALL_##call = (number),
#include ENSIO_TABLE
};
#undef CALL

#define BYTES C_BYTES
#define LOCAL_BYTES C_LOCAL_BYTES
#define ELEMENT_BYTES(type) C_BYTES(1, type)

#define SYNC(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, bytes) \
    C_WAITING(call, parameters, arguments, bytes, 0)
#define EXCHANGE SYNC
#define UNCOUNTED SYNC
#define WINDOW SYNC
#define FINDING(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, found) \
    C_FINDING(call, parameters, arguments, found)
#include ENSIO_TABLE
