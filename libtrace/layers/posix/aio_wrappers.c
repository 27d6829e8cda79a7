/* aio_wrappers.c: the wrappers of POSIX asynchronous I/O, generated from their table; compiled once for --wrap and once
 * for preload.
 *
 * The C library carries out requests in internal threads, by calls that no wrapper sees. */
#include "posix.h"

#include <calls/calls.h>
#include <files/aio_requests.h>
#include <files/descriptors.h>
#include <layers/recording.h>
#include <layers/wrapping.h>
#include <threads/thread.h>
#include <time/clock.h>

#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>

/* One layout serves both names. */
_Static_assert(sizeof(struct aiocb) == sizeof(struct aiocb64) &&
                   offsetof(struct aiocb, aio_offset) == offsetof(struct aiocb64, aio_offset),
               "control blocks differ");

enum {
#define CALL(number, call, op) CALL_##call = (number),
#include <calls/aio.def>
};
#undef CALL

typedef int state_of(const struct aiocb *block);
ENSIO_REAL_DECLARE(int, aio_error, (const struct aiocb *block))

static uint8_t direction_of(uint16_t call)
{
    return call == CALL_aio_read ? ENSIO_CARRIED_READ : call == CALL_aio_write ? ENSIO_CARRIED_WRITE : 0;
}

/* Before a submission. Requests on excluded files are not tracked. Returns the number of the request, or 0. */
static uint32_t begin(struct ensio_thread *thread, const struct aiocb *request, uint16_t call, int64_t offset,
                      uint64_t bytes, uint64_t start)
{
    const uint32_t number = ensio_descriptor(request->aio_fildes);
    if (number <= ENSIO_LEFT_OUT) {
        thread->excluded_calls++;
        return 0;
    }
    const struct ensio_open_file *open_file = &ensio_open_files[number];
    const uint32_t depth = open_file->of_mpi ? ensio_depth_of_mpi(thread->depth) : thread->depth;
    const int goes_to_end = call == CALL_aio_write && open_file->flags & ENSIO_APPENDS;
    const struct ensio_flying flying = ensio_flight_begin(start, direction_of(call));
    ensio_request_begin(request, &(struct ensio_request){
                                     .flying = flying,
                                     .offset = goes_to_end ? -1 : offset,
                                     .requested = bytes,
                                     .depth = (uint8_t)depth | (uint32_t)ensio_carried(depth) << 8,
                                     .file = open_file->file,
                                     .descriptor = call == CALL_aio_fsync ? request->aio_fildes : -1,
                                     .call = call,
                                 });
    return flying.request;
}

/* A request has the depth and the site of the call that submitted it, because MPI asks for results in any call that
 * makes progress. A refused one was never in flight. */
static void store(struct ensio_thread *thread, const struct ensio_request *request, int64_t moved, int flew)
{
    ensio_flight_store(thread, &request->flying, request->call, request->file, request->offset, request->requested,
                       moved, request->depth);
    if (flew)
        ensio_flight_end(thread, &request->flying, request->call, request->depth, 0);
}

/* Notes the caller of a submission, unless that is inside another call. */
static void called(struct ensio_thread *thread, void *frame)
{
    thread->depth = ensio_enter(thread, frame);
}

/* A refused request is complete, and the program does not ask for its result. */
static void refused(struct ensio_thread *thread, const struct aiocb *block, int error)
{
    struct ensio_request *request = block ? ensio_request_find(block) : NULL, taken;
    if (!request)
        return;
    ensio_request_completed(request, ensio_ticks());
    if (ensio_request_take(request, &taken))
        store(thread, &taken, -(int64_t)error, 0);
}

/* A call that waits for requests. */
struct waiting {
    struct ensio_thread *thread;
    uint64_t start, duration;
    uint16_t number; /* of the call */
    uint32_t file;   /* of the first request that is known; 0: none */
    int known;       /* number of known requests */
};

/* After the call: looks whether it completed a request. */
static void look(const struct waiting *wait, const struct aiocb *block, state_of *state)
{
    struct ensio_request *request = block ? ensio_request_find(block) : NULL;
    if (request && state(block) != EINPROGRESS && ensio_request_completed(request, wait->start + wait->duration)) {
        request->flying.wait_start = wait->start;
        request->flying.wait = wait->duration;
        request->flying.wait_thread = ensio_number_of_thread(wait->thread);
        request->flying.wait_call = wait->number;
    }
}

static void note(struct waiting *wait, const struct aiocb *block)
{
    const struct ensio_request *request = block ? ensio_request_find(block) : NULL;
    if (request && !wait->known++)
        wait->file = request->file;
}

static void store_wait(const struct waiting *wait, int64_t moved)
{
    ensio_io_blocks(wait->thread->depth, wait->duration);
    ensio_store(wait->thread, wait->number, wait->file, -1, 0, moved, wait->start, wait->duration);
}

/* Each request of a list has another start, because that identifies an event in its thread. */
static void begin_list(struct waiting *wait, struct aiocb *const blocks[], int count)
{
    for (int i = 0; i < count; i++)
        if (blocks[i] && blocks[i]->aio_lio_opcode != LIO_NOP) {
            const int reads = blocks[i]->aio_lio_opcode == LIO_READ;
            const uint64_t start = wait->start + (uint64_t)i;
            if (begin(wait->thread, blocks[i], reads ? CALL_aio_read : CALL_aio_write, blocks[i]->aio_offset,
                      blocks[i]->aio_nbytes, start))
                note(wait, blocks[i]);
        }
}

/* The requests share the time of a call that does not wait. One that waits is an event, and theirs is not known
 * apart. */
static void list_posted(const struct waiting *wait, struct aiocb *const blocks[], int count, uint64_t share)
{
    const uint64_t blocked = ensio_io_blocked;
    for (int i = 0; i < count; i++) {
        struct ensio_request *request = blocks[i] ? ensio_request_find(blocks[i]) : NULL;
        if (request && request->flying.start == wait->start + (uint64_t)i && !request->flying.posted) {
            ensio_flight_posted(&request->flying, share ? share : 1);
            request->flying.blocked = blocked + share;
        }
    }
}

static void end_list(const struct waiting *wait, struct aiocb *const blocks[], int count, int how, int error)
{
    if (!wait->known)
        return;
    if (error != EINVAL)
        list_posted(wait, blocks, count, how == LIO_WAIT ? 0 : wait->duration / (uint64_t)wait->known);
    for (int i = 0; i < count; i++)
        if (error == EINVAL)
            refused(wait->thread, blocks[i], error);
        else if (how == LIO_WAIT)
            look(wait, blocks[i], ENSIO_REAL(aio_error));
    if (how == LIO_WAIT)
        store_wait(wait, -(int64_t)error);
    else
        ensio_io_blocks(wait->thread->depth, wait->duration);
}

static void note_all(struct waiting *wait, const struct aiocb *const blocks[], int count)
{
    for (int i = 0; i < count; i++)
        note(wait, blocks[i]);
}

#define SUBMIT_SOUND(call, symbol, parameters, arguments, bytes, offset, sound) \
    ENSIO_WRAPPER(int, symbol, parameters) \
    { \
        struct ensio_thread *thread = &ensio_thread; \
        if (!(sound) || ENSIO_UNLIKELY(!ensio_ready(thread))) \
            return ENSIO_REAL(symbol) arguments; \
        called(thread, __builtin_frame_address(0)); \
        const uint64_t start = ensio_ticks(); \
        const uint32_t flying = begin(thread, request, CALL_##call, (offset), (uint64_t)(bytes), start); \
        const int result = ENSIO_REAL(symbol) arguments; \
        if (!flying) \
            return result; \
        const int error = errno; \
        const uint64_t duration = ensio_ticks() - start; \
        ensio_io_blocks(thread->depth, duration); \
        if (result != 0) \
            refused(thread, request, error); \
        else \
            ensio_request_posted(request, flying, duration); \
        errno = error; \
        return result; \
    }

#define SUBMIT(call, symbol, parameters, arguments, bytes, offset) \
    SUBMIT_SOUND(call, symbol, parameters, arguments, bytes, offset, 1)

#define SUBMIT_SYNC(call, symbol) \
    SUBMIT_SOUND(call, symbol, (int how, struct aiocb *request), (how, request), 0, -1, how == O_SYNC || how == O_DSYNC)

/* A list with an invalid mode is refused before its requests are read. */
#define SUBMIT_LIST(call, reading, writing, symbol) \
    ENSIO_WRAPPER(int, symbol, (int how, struct aiocb *const blocks[], int count, struct sigevent *tell)) \
    { \
        struct waiting wait = {.thread = &ensio_thread, .number = CALL_##call}; \
        if ((how != LIO_WAIT && how != LIO_NOWAIT) || ENSIO_UNLIKELY(!ensio_ready(wait.thread))) \
            return ENSIO_REAL(symbol)(how, blocks, count, tell); \
        called(wait.thread, __builtin_frame_address(0)); \
        wait.start = ensio_ticks(); \
        begin_list(&wait, blocks, count); \
        const int result = ENSIO_REAL(symbol)(how, blocks, count, tell), error = errno; \
        wait.duration = ensio_ticks() - wait.start; \
        end_list(&wait, blocks, count, how, result ? error : 0); \
        errno = error; \
        return result; \
    }

#define ASK(symbol) \
    ENSIO_WRAPPER(int, symbol, (const struct aiocb *block)) \
    { \
        const int result = ENSIO_REAL(symbol)(block); \
        if (result != EINPROGRESS) { \
            struct ensio_request *request = ensio_request_find(block); \
            if (request) \
                ensio_request_completed(request, ensio_ticks()); \
        } \
        return result; \
    }

/* Requests are noted before the call, because another thread may collect their results meanwhile. */
#define AWAIT(call, symbol) \
    ENSIO_WRAPPER(int, symbol, (const struct aiocb *const blocks[], int count, const struct timespec *limit)) \
    { \
        struct waiting wait = {.thread = &ensio_thread, .number = CALL_##call}; \
        if (ENSIO_LIKELY(ensio_ready(wait.thread))) \
            note_all(&wait, blocks, count); \
        if (!wait.known) \
            return ENSIO_REAL(symbol)(blocks, count, limit); \
        int result; \
        TIMED(wait.thread, result, ENSIO_REAL(symbol)(blocks, count, limit)); \
        const int error = errno; \
        wait.start = start; \
        wait.duration = duration; \
        for (int i = 0; result == 0 && i < count; i++) \
            look(&wait, blocks[i], ENSIO_REAL(aio_error)); \
        store_wait(&wait, result ? -(int64_t)error : 0); \
        errno = error; \
        return result; \
    }

/* The request is removed before the call, because the block may be reused after it. */
#define COLLECT(symbol) \
    ENSIO_WRAPPER(ssize_t, symbol, (struct aiocb * block)) \
    { \
        struct ensio_thread *thread = &ensio_thread; \
        struct ensio_request *request = ensio_ready(thread) ? ensio_request_find(block) : NULL, taken; \
        if (!request) \
            return ENSIO_REAL(symbol)(block); \
        const int before = errno, error = ENSIO_REAL(aio_error)(block); \
        errno = before; \
        if (error == EINPROGRESS) \
            return ENSIO_REAL(symbol)(block); \
        ensio_request_completed(request, ensio_ticks()); \
        const int mine = ensio_request_take(request, &taken); \
        const ssize_t result = ENSIO_REAL(symbol)(block); \
        if (mine) \
            store(thread, &taken, error ? -(int64_t)error : result, 1); \
        return result; \
    }

#include <calls/aio.def>

void ensio_aio_resolve(void)
{
#ifdef ENSIO_PRELOAD
#undef SYMBOL
#define SYMBOL(symbol) (void)ENSIO_REAL(symbol);
#include <calls/aio.def>
#endif
}
