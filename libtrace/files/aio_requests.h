/* aio_requests.h: requests of asynchronous I/O that are under way, found by the addresses of their control blocks.
 *
 * No function here locks, for aio_error and aio_return may be called in signal handlers; and none looks into the memory
 * of a control block, which is the program's to free.
 */
#ifndef ENSIO_FILES_AIO_REQUESTS_H
#define ENSIO_FILES_AIO_REQUESTS_H

#include <core/recorder.h>

struct ensio_request {
    const void *block;  /* the control block; NULL: this place is free */
    uint64_t start;     /* ticks at the submission */
    uint64_t completed; /* ticks when the program could first see it complete; 0: not yet */
    int64_t offset;
    uint64_t requested;
    uint32_t depth; /* of the thread at the submission, with what is counted around it (ENSIO_CARRIES_READ ...) */
    uint32_t file;
    int descriptor; /* of one that synchronises; -1: it does not */
    uint16_t call;
};

extern uint32_t ensio_request_syncs; /* how many requests there are that synchronise */

/* Whether this is a thread of the C library's that carries out one of them. Keeps errno. */
int ensio_request_carried_out(int fd);

/* Notes a request, with what it holds from its start on, before it is submitted. One for which there is no room is
 * counted as dropped. */
void ensio_request_begin(const void *block, const struct ensio_request *request);

/* The request of a control block, or NULL. */
struct ensio_request *ensio_request_find(const void *block);

/* The program could see, at this moment, that a request is complete. The first such moment counts. */
void ensio_request_completed(struct ensio_request *request, uint64_t now);

/* Takes a request out. Returns 0 if somebody else has done so first. */
int ensio_request_take(struct ensio_request *request, struct ensio_request *taken);

/* A forked child has no requests. The caller holds the lock. */
void ensio_requests_forget(void);

/* Counts the requests whose results the program never asked for as dropped, at its end. */
void ensio_requests_end(void);

#endif
