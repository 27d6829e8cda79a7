/* requests.h: non-blocking I/O, from its start to the call that completes it.
 *
 * A request from MPI_File_i... is kept until a Wait or a Test of any kind, in any thread, has set it to null. It then
 * becomes one event, whose duration is that of MPI_File_i..., and a flight (files/flights.h), from the entry into
 * MPI_File_i... to the return of the completing call. The thread that made that call stores both, just before the
 * call's own event. Requests that MPI_Request_free released, and those that are still pending at MPI_Finalize, are
 * assumed to have moved the requested bytes; when they were complete is unknown. */
#ifndef ENSIO_LAYERS_MPI_REQUESTS_H
#define ENSIO_LAYERS_MPI_REQUESTS_H

#include "abi.h"

#include <core/recorder.h>
#include <files/flights.h>

/* The transfer that an MPI-IO call starts. */
struct ensio_io {
    uint64_t start, requested;
    int64_t offset;
    uint32_t file;
    uint16_t call;
    uint8_t carries; /* ENSIO_CARRIED_READ or ENSIO_CARRIED_WRITE */
    uint32_t depth;  /* of the thread at the post, with the flags of an event above its eight bits */
    struct ensio_flying flying;
};

/* The status of a completed request: the only one, that at the request's index, or that at its index among the
 * completed ones. */
enum ensio_io_which { ENSIO_IO_ONE, ENSIO_IO_ALL, ENSIO_IO_SOME };

/* A call that may complete requests. */
struct ensio_io_wait {
    uint16_t call; /* its number among the calls of MPI-IO, if it completes any; 0: it does not wait */
    /* requests of I/O among those of the call; NULL: none, and the other members are not set */
    struct ensio_io_request *claimed;
    const void *requests;
    char *statuses;
    void *mapped; /* memory for statuses, if the program ignores them */
    uint64_t mapped_bytes;
    int count, fortran;
    char own[8 * ENSIO_MPI_STATUS_ROOM];
};

/* Before a call that starts a request: from here on its I/O is pending (ensio_io_pending). */
void ensio_io_starting(const struct ensio_io *io);

/* Its I/O is complete. */
void ensio_io_over(const struct ensio_io *io);

/* The call has returned after `duration`: notes the post of a request. */
void ensio_io_posted(struct ensio_thread *thread, struct ensio_io *io, uint64_t duration);

/* Stores the event of a completed request, and its flight if it is over. `flags`: ENSIO_FLIGHT_.... */
void ensio_io_store(struct ensio_thread *thread, const struct ensio_io *io, int64_t moved, uint32_t flags);

/* The call has returned with a request, or failed. */
void ensio_io_started(struct ensio_thread *thread, struct ensio_io *io, int result, uintptr_t request,
                      uint64_t duration);

/* Begins a call on requests. If the program ignores statuses, `statuses` is set to memory of the recorder. Costs only a
 * comparison if no I/O is pending. */
void ensio_io_claim(struct ensio_io_wait *wait, int count, enum ensio_io_which which, void *requests, void **statuses,
                    int fortran);
static inline void ensio_io_wait_begin(struct ensio_io_wait *wait, uint16_t call, int count, enum ensio_io_which which,
                                       void *requests, void **statuses, int fortran)
{
    wait->claimed = NULL;
    wait->call = call;
    if (ENSIO_UNLIKELY(ensio_io_pending) && requests)
        ensio_io_claim(wait, count, which, requests, statuses, fortran);
}

/* Ends it: stores the events of requests that it completed, and returns their number. For ENSIO_IO_SOME, `places` are
 * the indices of the `ended` requests. */
int ensio_io_complete(struct ensio_thread *thread, struct ensio_io_wait *wait, enum ensio_io_which which,
                      const int *places, int ended, int result, uint64_t start, uint64_t duration);
static inline int ensio_io_wait_end(struct ensio_thread *thread, struct ensio_io_wait *wait, enum ensio_io_which which,
                                    const int *places, int ended, int result, uint64_t start, uint64_t duration)
{
    return ENSIO_UNLIKELY(wait->claimed != NULL)
               ? ensio_io_complete(thread, wait, which, places, ended, result, start, duration)
               : 0;
}

/* MPI ends, so the remaining requests are not waited for. */
void ensio_io_give_up(struct ensio_thread *thread);

#endif
