/* recording.h: macros that the wrappers of all tables share. */
#ifndef ENSIO_LAYERS_RECORDING_H
#define ENSIO_LAYERS_RECORDING_H

#include <core/recorder.h>
#include <files/descriptors.h>
#include <time/clock.h>

/* Makes the real call between two readings of the clock. */
#define TIMED(thread, result, call) \
    const uint32_t depth = ensio_enter(thread, __builtin_frame_address(0)); \
    const uint64_t start = ensio_ticks(); \
    (result) = (call); \
    const uint64_t duration = ensio_ticks() - start; \
    (thread)->depth = depth

/* The same for a call that counts the bytes of calls inside it (ENSIO_CARRIES_READ, ENSIO_CARRIES_WRITE). */
#define TIMED_CARRYING(thread, carries, result, call) \
    const uint32_t depth = ensio_enter(thread, __builtin_frame_address(0)); \
    (thread)->depth |= (carries); \
    const uint64_t start = ensio_ticks(); \
    (result) = (call); \
    const uint64_t duration = ensio_ticks() - start; \
    (thread)->depth = depth

/* Makes the real call of a descriptor whose calls are not recorded: the second reading of the clock is made only if the
 * call fails (ensio_write_left_out). */
#define TIMED_IF_FAILED(thread, flags, result, call) \
    const uint32_t depth = ensio_enter(thread, __builtin_frame_address(0)); \
    (thread)->depth |= (flags); \
    const uint64_t start = ensio_ticks(); \
    (result) = (call); \
    (thread)->depth = depth

/* Finds the open file of a descriptor. If its calls are not recorded, `left_out` is executed. */
#define RECORD_OR(open_file, fd, passed, left_out) \
    struct ensio_thread *thread = &ensio_thread; \
    if (ENSIO_UNLIKELY(!ensio_ready(thread))) \
        return (passed); \
    const uint32_t number = ensio_descriptor(fd); \
    if (ENSIO_UNLIKELY(number <= ENSIO_LEFT_OUT)) { \
        left_out; \
    } \
    struct ensio_open_file *open_file = &ensio_open_files[number]; \
    const uint32_t file = open_file->file

/* Calls only the real function if the descriptor's calls are not recorded. */
#define RECORD_OR_PASS(open_file, fd, call) RECORD_OR(open_file, fd, call, thread->excluded_calls++; return (call))

#endif
