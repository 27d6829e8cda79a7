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

/* Before a submission. Requests on excluded files are not tracked. */
static int begin(struct ensio_thread *thread, const struct aiocb *request, uint16_t call, int64_t offset,
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
    ensio_request_begin(request, &(struct ensio_request){
                                     .start = start,
                                     .offset = goes_to_end ? -1 : offset,
                                     .requested = bytes,
                                     .depth = (uint8_t)depth | (uint32_t)ensio_carried(depth) << 8,
                                     .file = open_file->file,
                                     .descriptor = call == CALL_aio_fsync ? request->aio_fildes : -1,
                                     .call = call,
                                 });
    return 1;
}

/* A request has the depth of the call that submitted it, because MPI asks for results in any call that makes
 * progress. */
static void store(struct ensio_thread *thread, const struct ensio_request *request, int64_t moved)
{
    const uint32_t depth = ensio_enter(thread, __builtin_frame_address(0));
    thread->depth = request->depth;
    ensio_store(thread, request->call, request->file, request->offset, request->requested, moved, request->start,
                request->completed - request->start);
    thread->depth = depth;
}

/* A refused request is complete, and the program does not ask for its result. */
static void refused(struct ensio_thread *thread, const struct aiocb *block, int error)
{
    struct ensio_request *request = ensio_request_find(block), taken;
    if (!request)
        return;
    ensio_request_completed(request, ensio_ticks());
    if (ensio_request_take(request, &taken))
        store(thread, &taken, -(int64_t)error);
}

static void look(const struct aiocb *block, state_of *state, uint64_t now)
{
    struct ensio_request *request = block ? ensio_request_find(block) : NULL;
    if (request && state(block) != EINPROGRESS)
        ensio_request_completed(request, now);
}

#define SUBMIT_SOUND(call, symbol, parameters, arguments, bytes, offset, sound) \
    ENSIO_WRAPPER(int, symbol, parameters) \
    { \
        struct ensio_thread *thread = &ensio_thread; \
        if (!(sound) || ENSIO_UNLIKELY(!ensio_ready(thread)) || \
            !begin(thread, request, CALL_##call, (offset), (uint64_t)(bytes), ensio_ticks())) \
            return ENSIO_REAL(symbol) arguments; \
        const int result = ENSIO_REAL(symbol) arguments; \
        if (result != 0) { \
            const int error = errno; \
            refused(thread, request, error); \
            errno = error; \
        } \
        return result; \
    }

#define SUBMIT(call, symbol, parameters, arguments, bytes, offset) \
    SUBMIT_SOUND(call, symbol, parameters, arguments, bytes, offset, 1)

#define SUBMIT_SYNC(call, symbol) \
    SUBMIT_SOUND(call, symbol, (int how, struct aiocb *request), (how, request), 0, -1, how == O_SYNC || how == O_DSYNC)

/* A list with an invalid mode is refused before its requests are read. */
#define SUBMIT_LIST(reading, writing, symbol) \
    ENSIO_WRAPPER(int, symbol, (int how, struct aiocb *const blocks[], int count, struct sigevent *tell)) \
    { \
        struct ensio_thread *thread = &ensio_thread; \
        if ((how != LIO_WAIT && how != LIO_NOWAIT) || ENSIO_UNLIKELY(!ensio_ready(thread))) \
            return ENSIO_REAL(symbol)(how, blocks, count, tell); \
        const uint64_t start = ensio_ticks(); \
        for (int i = 0; i < count; i++) \
            if (blocks[i] && blocks[i]->aio_lio_opcode != LIO_NOP) \
                begin(thread, blocks[i], blocks[i]->aio_lio_opcode == LIO_READ ? CALL_##reading : CALL_##writing, \
                      blocks[i]->aio_offset, blocks[i]->aio_nbytes, start); \
        const int result = ENSIO_REAL(symbol)(how, blocks, count, tell), error = errno; \
        const uint64_t now = ensio_ticks(); \
        for (int i = 0; i < count; i++) \
            if (result != 0 && error == EINVAL) \
                refused(thread, blocks[i], error); \
            else if (how == LIO_WAIT) \
                look(blocks[i], ENSIO_REAL(aio_error), now); \
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

#define AWAIT(symbol) \
    ENSIO_WRAPPER(int, symbol, (const struct aiocb *const blocks[], int count, const struct timespec *limit)) \
    { \
        const int result = ENSIO_REAL(symbol)(blocks, count, limit); \
        if (result == 0) { \
            const uint64_t now = ensio_ticks(); \
            const int error = errno; \
            for (int i = 0; i < count; i++) \
                look(blocks[i], ENSIO_REAL(aio_error), now); \
            errno = error; \
        } \
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
            store(thread, &taken, error ? -(int64_t)error : result); \
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
