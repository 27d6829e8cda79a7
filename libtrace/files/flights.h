/* flights.h: requests of non-blocking I/O, from their post to the moment at which the program could first observe
 * their completion.
 *
 * The event of a request holds the time in the call that posted it. The time in flight is a row in separate
 * windows, and a part of sums that every mode keeps. */
#ifndef ENSIO_FILES_FLIGHTS_H
#define ENSIO_FILES_FLIGHTS_H

#include <core/recorder.h>

/* A request in flight. */
struct ensio_flying {
    uint64_t start;       /* ticks at the entry of the call that posted it */
    uint64_t posted;      /* ticks in this call; 0: it has not returned yet */
    uint64_t blocked;     /* the poster's ensio_io_blocked at that moment */
    const void *poster;   /* thread that posted it */
    uint64_t completed;   /* ticks when the program could first observe completion; 0: not yet */
    uint64_t wait_start;  /* the wait that completed it; 0: none */
    uint64_t wait;        /* ticks in this wait */
    uint32_t request;     /* its number in the process */
    uint16_t wait_thread; /* number of the thread that waited */
    uint16_t wait_call;
    uint16_t site;     /* call site of the post */
    uint8_t direction; /* ENSIO_CARRIED_READ or ENSIO_CARRIED_WRITE; 0: neither */
    uint8_t idle;      /* its data move only in the call that completes it, so nothing of its flight is hidden */
};

/* Ticks that this thread spent in calls that post requests or wait for them, without calls inside others. */
extern _Thread_local uint64_t ensio_io_blocked;

/* Begins a request, in a call that was entered at `start`. */
struct ensio_flying ensio_flight_begin(uint64_t start, uint8_t direction);

/* The call that posted it has returned after this many ticks. */
static inline void ensio_flight_posted(struct ensio_flying *flying, uint64_t ticks)
{
    flying->blocked = ensio_io_blocked;
    flying->posted = ticks;
}

/* A call that posts requests or waits for them has returned after this many ticks. `depth`: recorded calls around
 * it. */
static inline void ensio_io_blocks(uint32_t depth, uint64_t ticks)
{
    if (!(uint8_t)depth)
        ensio_io_blocked += ticks;
}

/* Stores the event of a request that is over, with the depth and the site of the call that posted it. */
void ensio_flight_store(struct ensio_thread *thread, const struct ensio_flying *flying, uint16_t call, uint32_t file,
                        int64_t offset, uint64_t requested, int64_t moved, uint32_t depth);

/* After the event of a completed request: stores its flight. `depth`: recorded calls around the post; `flags`:
 * ENSIO_FLIGHT_.... Takes the lock, in mode trace only. */
void ensio_flight_end(struct ensio_thread *thread, const struct ensio_flying *flying, uint16_t call, uint32_t depth,
                      uint32_t flags);

/* Stores the sums as a property as well, because a job file has no other place for them. The caller holds the lock. */
void ensio_flights_store(void);

/* A forked child counts its requests from 1. The caller holds the lock. */
void ensio_flights_forget(void);

#endif
