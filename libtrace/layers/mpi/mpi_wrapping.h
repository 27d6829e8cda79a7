/* mpi_wrapping.h: macros that the wrappers of MPI calls share.
 *
 * An MPI call inside another MPI call is internal to the library and not recorded: Fortran bindings call the C
 * functions, and collectives are built from other collectives. Other calls inside an MPI call are recorded with their
 * depth. */
#ifndef ENSIO_LAYERS_MPI_MPI_WRAPPING_H
#define ENSIO_LAYERS_MPI_MPI_WRAPPING_H

#include "abi.h"
#include "requests.h"

#include <core/settings.h>
#include <layers/recording.h>
#include <layers/wrapping.h>
#include <time/clock.h>

/* Stack frame of the MPI call that this thread is in; NULL: none. Frames of inner calls lie below it. If a jump left an
 * MPI call, the next call from the same frame or from above detects it. */
extern _Thread_local char *ensio_mpi_frame;

/* Bytes of a message; 0 if the type is invalid. */
uint64_t ensio_mpi_message_bytes(int64_t count, uintptr_t type);

#define ENSIO_MPI_FRAME ((char *)__builtin_frame_address(0))

static inline int ensio_mpi_inside(const char *frame)
{
    return ENSIO_UNLIKELY(ensio_mpi_frame != NULL) && frame < ensio_mpi_frame;
}

/* Begins a wrapper. Calls only the real function inside another MPI call, if `needed` is 0, if the thread is not
 * recorded, or if the MPI is unknown. `result` is the wrapper's return value, which `call` may set. */
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

/* Calls only the real function after all. */
#define LEAVE_UNRECORDED(thread, call, result) \
    do { \
        (thread)->excluded_calls++; \
        call; \
        ensio_mpi_frame = NULL; \
        return result; \
    } while (0)

/* Makes the real call between two readings of the clock. `carries`: see ENSIO_CARRIES_READ. */
#define MPI_TIMED(thread, carries, call) \
    const uint32_t depth = ensio_enter(thread, frame); \
    (thread)->depth |= (carries) | ENSIO_IN_MPI; \
    const uint64_t start = ensio_ticks(); \
    call; \
    const uint64_t duration = ensio_ticks() - start; \
    (thread)->depth = depth; \
    ensio_mpi_frame = NULL

/* Calls that wait for a message and complete no I/O: by default they are in the summary and not among the events
 * (ENSIO_POINT_TO_POINT). */
#define ENSIO_BETWEEN_TWO(call) ((call) >= CALL_MPI_Wait && (call) <= CALL_MPI_Probe && !ensio_settings.point_to_point)

/* Stores a call that waits for other tasks. */
#define STORE_WAIT(thread, call, summed_only, requested, error) \
    do { \
        const uint32_t kept_depth = (thread)->depth; \
        (thread)->depth |= (summed_only) ? ENSIO_SUMS_ONLY : 0; \
        ensio_store(thread, call, 0, -1, requested, ENSIO_UNLIKELY(error) ? -(int64_t)ensio_mpi_errno(error) : 0, \
                    start, duration); \
        (thread)->depth = kept_depth; \
    } while (0)

/* The wrapper in C of a call that waits for other tasks, or sends them something. `symbol` counts as the call. */
#define C_WAITING_AS(symbol, call, parameters, arguments, bytes, summed_only) \
    ENSIO_WRAPPER(int, symbol, parameters) \
    { \
        __auto_type real = ENSIO_REAL(symbol); \
        int result; \
        ENTER_OR_PASS(thread, WANTED(call), result = real arguments, result) \
        const uint64_t moving = (bytes); \
        MPI_TIMED(thread, 0, result = real arguments); \
        STORE_WAIT(thread, CALL_MPI_##call, summed_only, moving, result); \
        return result; \
    }
#define C_WAITING(call, parameters, arguments, bytes, summed_only) \
    C_WAITING_AS(MPI_##call, call, parameters, arguments, bytes, summed_only)

/* The same for a call that asks whether something has come: stored if it has. */
#define C_FINDING(call, parameters, arguments, found) \
    ENSIO_WRAPPER(int, MPI_##call, parameters) \
    { \
        __auto_type real = ENSIO_REAL(MPI_##call); \
        int result; \
        ENTER_OR_PASS(thread, WANTED(call), result = real arguments, result) \
        MPI_TIMED(thread, 0, result = real arguments); \
        if (result == 0 && (found)) \
            STORE_WAIT(thread, CALL_MPI_##call, 0, 0, result); \
        return result; \
    }
#define C_BYTES(count, type) ensio_mpi_message_bytes(count, type)
#define C_LOCAL_BYTES(data, count, type) ((data) == ensio_mpi()->in_place ? 0 : ensio_mpi_message_bytes(count, type))

#define WANTED(call) (!ensio_unwanted_calls[CALL_MPI_##call])

#endif
