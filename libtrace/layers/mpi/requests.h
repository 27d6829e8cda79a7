/* requests.h: non-blocking I/O, from its beginning to the call that finds it completed.
 *
 * A request that MPI_File_i... gave is kept until a Wait or a Test of any kind, in any thread, has made it null. It is
 * one event then: from the entry into MPI_File_i... to the return of that call, stored by the thread that made it, just
 * before the call's own event. Requests that MPI_Request_free gave up, and those that nobody has waited for when
 * MPI_Finalize comes, are taken to have moved what was asked for.
 */
#ifndef ENSIO_LAYERS_MPI_REQUESTS_H
#define ENSIO_LAYERS_MPI_REQUESTS_H

#include "abi.h"

#include <core/recorder.h>

/* What one MPI-IO call is about to move. */
struct ensio_io {
    uint64_t start, requested;
    int64_t offset;
    uint32_t file;
    uint16_t call;
    uint8_t carries; /* ENSIO_CARRIED_READ or ENSIO_CARRIED_WRITE */
};

/* Where the status of a completed request is: in the only one, at its own place, or at the place that its number has
 * among those that were completed. */
enum ensio_io_which { ENSIO_IO_ONE, ENSIO_IO_ALL, ENSIO_IO_SOME };

/* A call that may complete requests. */
struct ensio_io_wait {
    struct ensio_io_request *claimed; /* the requests of I/O among its own; NULL: none, and all else is not set */
    const void *requests;
    char *statuses;
    void *mapped; /* room for statuses, where the program wants none */
    uint64_t mapped_bytes;
    int count, fortran;
    char own[8 * ENSIO_MPI_STATUS_ROOM];
};

/* A call that gives a request begins: from here on its I/O is under way (ensio_io_pending). */
void ensio_io_starting(const struct ensio_io *io);

/* It is over. */
void ensio_io_over(const struct ensio_io *io);

/* The call has returned with a request, or failed. */
void ensio_io_started(struct ensio_thread *thread, const struct ensio_io *io, int result, uintptr_t request,
                      uint64_t duration);

/* Begins a call on requests; `statuses` becomes memory of our own where the program's are to be ignored. Costs nothing
 * but a comparison where no I/O is under way. */
void ensio_io_claim(struct ensio_io_wait *wait, int count, enum ensio_io_which which, void *requests, void **statuses,
                    int fortran);
static inline void ensio_io_wait_begin(struct ensio_io_wait *wait, int count, enum ensio_io_which which, void *requests,
                                       void **statuses, int fortran)
{
    wait->claimed = NULL;
    if (ENSIO_UNLIKELY(ensio_io_pending) && requests)
        ensio_io_claim(wait, count, which, requests, statuses, fortran);
}

/* Ends it; stores the events of requests that it completed, and returns how many there were. For ENSIO_IO_SOME,
 * `places` are those of the `ended` requests. */
int ensio_io_complete(struct ensio_thread *thread, struct ensio_io_wait *wait, enum ensio_io_which which,
                      const int *places, int ended, int result, uint64_t end);
static inline int ensio_io_wait_end(struct ensio_thread *thread, struct ensio_io_wait *wait, enum ensio_io_which which,
                                    const int *places, int ended, int result, uint64_t end)
{
    return ENSIO_UNLIKELY(wait->claimed != NULL) ? ensio_io_complete(thread, wait, which, places, ended, result, end)
                                                 : 0;
}

/* MPI ends: nobody will wait for what is left. */
void ensio_io_give_up(struct ensio_thread *thread);

#endif
