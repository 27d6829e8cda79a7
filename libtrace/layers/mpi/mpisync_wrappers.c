/* mpisync_wrappers.c: the wrappers of synchronisation calls in C, generated from their table, and of the calls that
 * complete non-blocking I/O. */
#include "mpi_wrapping.h"
#include "query.h"

enum {
#define CALL(number, call, op) CALL_##call = (number),
#include <calls/mpiio.def>
#include <calls/mpisync.def>
#include <calls/mpimsg.def>
};
#undef CALL

#define VALUE(number) (number)
#define BYTES C_BYTES
#define LOCAL_BYTES C_LOCAL_BYTES

#define SYNC(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, bytes) \
    C_WAITING(call, parameters, arguments, bytes, ENSIO_BETWEEN_TWO(CALL_MPI_##call))
#define EXCHANGE SYNC

/* The layer mpisync may be excluded while the I/O that a call completes is recorded. A Test that completes messages is
 * recorded with these. */
#define COMPLETING(call, parameters, arguments, count, which, places, ended, recorded) \
    ENSIO_WRAPPER(int, MPI_##call, parameters) \
    { \
        __auto_type real = ENSIO_REAL(MPI_##call); \
        int result; \
        ENTER_OR_PASS(thread, WANTED(call) || ensio_io_pending, result = real arguments, result) \
        struct ensio_io_wait wait; \
        ensio_io_wait_begin(&wait, CALL_MPI_##call##_of_io, count, which, requests, &statuses, 0); \
        MPI_TIMED(thread, 0, result = real arguments); \
        const int completed = \
            ensio_io_wait_end(thread, &wait, which, places, wait.claimed ? ended : 0, result, start, duration); \
        if (completed) \
            STORE_WAIT(thread, CALL_MPI_##call##_of_io, 0, 0, result); \
        else if (recorded) \
            STORE_WAIT(thread, CALL_MPI_##call, ENSIO_BETWEEN_TWO(CALL_MPI_##call), 0, result); \
        return result; \
    }

#define COMPLETION(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, count, which, places, \
                   ended) \
    COMPLETING(call, parameters, arguments, count, which, places, ended, 1)
#define TEST(call, lower, parameters, arguments, fortran_parameters, fortran_arguments, count, which, places, ended, \
             done) \
    COMPLETING(call, parameters, arguments, count, which, places, ended, WANTED(Send) && result == 0 && (done))
#define OTHER(call, lower)
#include <calls/mpisync.def>

/* A request of I/O ends here, as far as the program is concerned. */
ENSIO_WRAPPER(int, MPI_Request_free, (void *request))
{
    int result;
    void *no_status = NULL;
    ENTER_OR_PASS(thread, ensio_io_pending, result = ENSIO_REAL(MPI_Request_free)(request), result)
    struct ensio_io_wait wait;
    ensio_io_wait_begin(&wait, 0, 1, ENSIO_IO_ONE, request, &no_status, 0);
    wait.statuses = NULL;
    MPI_TIMED(thread, 0, result = ENSIO_REAL(MPI_Request_free)(request));
    ensio_io_wait_end(thread, &wait, ENSIO_IO_ONE, NULL, 0, result, start, duration);
    return result;
}
