/* mpisync_fortran.c: the wrappers of the synchronisation calls in Fortran, generated from their table. */
#include "fortran.h"
#include "query.h"

#include <stddef.h>

enum {
#define CALL(number, call, op) CALL_##call = (number),
#include <calls/mpiio.def>
#include <calls/mpisync.def>
#include <calls/mpimsg.def>
};
#undef CALL

#define VALUE(number) (*(number))
#define BYTES FORTRAN_BYTES
#define LOCAL_BYTES FORTRAN_LOCAL_BYTES

#define WAITING(call, symbol, parameters, arguments, bytes) \
    FORTRAN_WAITING(call, symbol, parameters, arguments, bytes, ENSIO_BETWEEN_TWO(CALL_MPI_##call))

#define COMPLETING(call, symbol, parameters, arguments, count, which, places, ended, recorded) \
    FORTRAN_WRAPPER(symbol, parameters) \
    { \
        __auto_type real = FORTRAN_REAL(symbol); \
        ENTER_OR_PASS(thread, WANTED(call) || ensio_io_pending, real arguments, ) \
        ERROR_OR_OWN; \
        struct ensio_io_wait wait; \
        ensio_io_wait_begin(&wait, CALL_MPI_##call##_of_io, count, which, requests, &statuses, 1); \
        MPI_TIMED(thread, 0, real arguments); \
        const int completed = \
            ensio_io_wait_end(thread, &wait, which, places, wait.claimed ? ended : 0, *error, start, duration); \
        if (completed) \
            STORE_WAIT(thread, CALL_MPI_##call##_of_io, 0, 0, *error); \
        else if (recorded) \
            STORE_WAIT(thread, CALL_MPI_##call, ENSIO_BETWEEN_TWO(CALL_MPI_##call), 0, *error); \
    }

#if HAS_PART(1)
#define SYNC(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, bytes) \
    WAITING(call, BOUND(mpi_##lower), fortran_parameters, fortran_arguments, bytes)
#define EXCHANGE(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, bytes)
#define COMPLETION(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, count, which, places, \
                   ended) \
    COMPLETING(call, BOUND(mpi_##lower), fortran_parameters, fortran_arguments, count, which, places, ended, 1)
#define TEST(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, count, which, places, ended, \
             done) \
    COMPLETING(call, BOUND(mpi_##lower), fortran_parameters, fortran_arguments, count, which, places, ended, \
               WANTED(Send) && *error == 0 && (done))
#define OTHER(call, lower)
#include <calls/mpisync.def>

FORTRAN_WRAPPER(BOUND(mpi_request_free), (int *request, int *error))
{
    __auto_type real = FORTRAN_REAL(BOUND(mpi_request_free));
    void *no_status = NULL;
    ENTER_OR_PASS(thread, ensio_io_pending, real(request, error), )
    ERROR_OR_OWN;
    struct ensio_io_wait wait;
    ensio_io_wait_begin(&wait, 0, 1, ENSIO_IO_ONE, request, &no_status, 1);
    wait.statuses = NULL;
    MPI_TIMED(thread, 0, real(request, error));
    ensio_io_wait_end(thread, &wait, ENSIO_IO_ONE, NULL, 0, *error, start, duration);
}
#endif

#if HAS_PART(2)
#define SYNC(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, bytes)
#define EXCHANGE(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, bytes) \
    WAITING(call, BOUND(mpi_##lower), fortran_parameters, fortran_arguments, bytes)
#define COMPLETION(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, count, which, places, \
                   ended)
#define TEST(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, count, which, places, ended, \
             done)
#define OTHER(call, lower)
#include <calls/mpisync.def>
#endif
