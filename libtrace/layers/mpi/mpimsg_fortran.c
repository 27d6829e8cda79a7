/* mpimsg_fortran.c: the same in Fortran. */
#include "fortran.h"
#include "query.h"

enum {
#define CALL(number, call, op) CALL_##call = (number),
#include ENSIO_TABLE
};
#undef CALL

#define BYTES FORTRAN_BYTES
#define LOCAL_BYTES FORTRAN_LOCAL_BYTES
#define ELEMENT_BYTES(type) ensio_mpi_message_bytes(1, ensio_mpi_type_f2c(*(type)))

#if HAS_PART(1)
#define SYNC(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, bytes) \
    FORTRAN_WAITING(call, BOUND(mpi_##lower), fortran_parameters, fortran_arguments, bytes, 0)
#define EXCHANGE(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, bytes)
#define WINDOW SYNC
#define UNCOUNTED EXCHANGE
#define FINDING(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, found) \
    FORTRAN_FINDING(call, BOUND(mpi_##lower), fortran_parameters, fortran_arguments, found)
#include ENSIO_TABLE
#endif

#if HAS_PART(2)
#define SYNC(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, bytes)
#define EXCHANGE(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, bytes) \
    FORTRAN_WAITING(call, BOUND(mpi_##lower), fortran_parameters, fortran_arguments, bytes, 0)
#define WINDOW SYNC
#define UNCOUNTED EXCHANGE
#define FINDING(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, found)
#include ENSIO_TABLE
#endif
