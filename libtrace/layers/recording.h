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

/* Calls only the real function if the descriptor's calls are not recorded. */
#define RECORD_OR_PASS(open_file, fd, call) \
    struct ensio_thread *thread = &ensio_thread; \
    if (ENSIO_UNLIKELY(!ensio_ready(thread))) \
        return (call); \
    const uint32_t number = ensio_descriptor(fd); \
    if (ENSIO_UNLIKELY(number <= ENSIO_LEFT_OUT)) { \
        thread->excluded_calls++; \
        return (call); \
    } \
    struct ensio_open_file *open_file = &ensio_open_files[number]; \
    const uint32_t file = open_file->file

#endif
