/* mpi_wrapping.h: what the wrappers of MPI's calls have in common.
 *
 * An MPI call inside an MPI call is the library's own business and is not recorded: Fortran bindings that call the C
 * functions, collectives that are made of others. Other calls inside are, each with its depth.
 */
#ifndef ENSIO_LAYERS_MPI_MPI_WRAPPING_H
#define ENSIO_LAYERS_MPI_MPI_WRAPPING_H

#include "abi.h"
#include "requests.h"

#include <layers/recording.h>
#include <layers/wrapping.h>
#include <time/clock.h>

/* Stack frame of the MPI call that this thread is in; NULL: none. Frames of calls inside lie below it. One that was
 * left by a jump is found out by the next call from where it was made, or from above. */
extern _Thread_local char *ensio_mpi_frame;

/* Bytes of a message; 0 where the type is none. */
uint64_t ensio_mpi_message_bytes(int64_t count, uintptr_t type);

#define ENSIO_MPI_FRAME ((char *)__builtin_frame_address(0))

static inline int ensio_mpi_inside(const char *frame)
{
    return ENSIO_UNLIKELY(ensio_mpi_frame != NULL) && frame < ensio_mpi_frame;
}

/* Begins a wrapper: leaves it by way of the real call alone inside another MPI call, and where `needed` is 0, the
 * thread is not recorded, or the MPI is none that we know. `result` is what the wrapper returns, and `call` may set it.
 */
#define ENTER_OR_PASS(thread, needed, call, result) \
    char *const frame = ENSIO_MPI_FRAME; \
    if (ensio_mpi_inside(frame)) { \
        call; \
        return result; \
    } \
    struct ensio_thread *const thread = &ensio_thread; \
    ensio_mpi_frame = frame; \
    if (ENSIO_UNLIKELY(!(needed) || !ensio_ready(thread) || !ensio_mpi_known())) { \
        call; \
        ensio_mpi_frame = NULL; \
        return result; \
    }

/* Leaves by way of the real call alone after all. */
#define LEAVE_UNRECORDED(thread, call, result) \
    do { \
        (thread)->excluded_calls++; \
        call; \
        ensio_mpi_frame = NULL; \
        return result; \
    } while (0)

/* The real call between two readings of the clock. `carries`: see ENSIO_CARRIES_READ. */
#define MPI_TIMED(thread, carries, call) \
    const uint32_t depth = ensio_enter(thread, frame); \
    (thread)->depth |= (carries) | ENSIO_IN_MPI; \
    const uint64_t start = ensio_ticks(); \
    call; \
    const uint64_t duration = ensio_ticks() - start; \
    (thread)->depth = depth; \
    ensio_mpi_frame = NULL

#define WANTED(call) (!ensio_unwanted_calls[CALL_MPI_##call])

#endif
