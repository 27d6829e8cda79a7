/* aio_requests.h: pending requests of asynchronous I/O, found by the addresses of their control blocks.
 *
 * No function here takes the lock, because aio_error and aio_return may be called in signal handlers. None reads a
 * control block, which the program may have freed. */
#ifndef ENSIO_FILES_AIO_REQUESTS_H
#define ENSIO_FILES_AIO_REQUESTS_H

#include "flights.h"

#include <core/recorder.h>

struct ensio_request {
    const void *block; /* the control block; NULL: this place is free */
    struct ensio_flying flying;
    int64_t offset;
    uint64_t requested;
    uint32_t depth; /* depth of the thread at submission, with its flags (ENSIO_CARRIES_READ ...) */
    uint32_t file;
    int descriptor; /* of a synchronisation; -1 otherwise */
    uint16_t call;
};

extern uint32_t ensio_request_syncs; /* number of pending synchronisations */

/* Whether this is a thread of the C library that carries out one of them. Preserves errno. */
int ensio_request_carried_out(int fd);

/* Notes a request before it is submitted. If there is no room, the request counts as dropped. */
void ensio_request_begin(const void *block, const struct ensio_request *request);

/* The request of a control block, or NULL. */
struct ensio_request *ensio_request_find(const void *block);

/* The call that submitted the request of a block has returned. The request may be gone, and the block in use for
 * another. */
void ensio_request_posted(const void *block, uint32_t number, uint64_t ticks);

/* The program can observe now that a request is complete. Only the first such moment counts. Returns whether this is
 * it. */
int ensio_request_completed(struct ensio_request *request, uint64_t now);

/* Removes a request. Returns 0 if another thread has already removed it. */
int ensio_request_take(struct ensio_request *request, struct ensio_request *taken);

/* A forked child has no requests. The caller holds the lock. */
void ensio_requests_forget(void);

/* At the end of the program: requests whose results the program never asked for count as dropped. */
void ensio_requests_end(void);

#endif
