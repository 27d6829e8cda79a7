/* hdf5_wrappers.c: the wrappers of HDF5's calls, generated from their table; compiled once for preload, and once for
 * each part for --wrap.
 *
 * Calls that HDF5 makes to its own functions are not recorded. Its calls to MPI-IO and POSIX are recorded with a larger
 * depth. */
#include "hdf5.h"
#include "hdf5_libraries.h"

#include <layers/recording.h>
#include <layers/wrapping.h>

#include <errno.h>

enum {
#define CALL(number, call, op) CALL_##call = (number),
#include <calls/hdf5.def>
};
#undef CALL
#undef SYMBOL

/* hdf5: the library, whose functions REAL calls. A program that checks for HDF5 finds the preloaded wrappers; without
 * HDF5 they fail. */
#ifdef ENSIO_PRELOAD
#define DECLARE(type, symbol, parameters) typedef type ensio_type_##symbol parameters;
#define REAL(symbol) ((ensio_type_##symbol *)library->functions[ENSIO_FUNCTION_##symbol])
#define FIND_LIBRARY(symbol) \
    const struct ensio_hdf5_library *const library = ensio_hdf5_library(__builtin_return_address(0)); \
    if (ENSIO_UNLIKELY(!library || !REAL(symbol))) \
        return -1; \
    const struct ensio_hdf5 *const hdf5 = &library->hdf5
#else
#define DECLARE(type, symbol, parameters) extern type real_##symbol parameters __asm__("__real_" #symbol);
#define REAL(symbol) real_##symbol
#define FIND_LIBRARY(symbol) const struct ensio_hdf5 *const hdf5 = &ensio_hdf5_linked
#define NEWER(type, symbol, parameters) \
    extern type real_##symbol parameters __asm__("__real_" #symbol) __attribute__((weak));
#endif

#define WRAPPER(type, symbol, parameters) \
    DECLARE(type, symbol, parameters) \
    ENSIO_DEFINE(type, symbol, parameters)

static inline int recorded(const struct ensio_hdf5 *hdf5, struct ensio_thread *thread, uint16_t call, const char *frame)
{
    if (ensio_unwanted_calls[call] || (ensio_hdf5_frame && frame < ensio_hdf5_frame) || !ensio_ready(thread))
        return 0;
    if (ENSIO_LIKELY(!ensio_hdf5_too_old(hdf5)))
        return 1;
    ensio_hdf5_say_too_old();
    return 0;
}

/* Calls only the real function if the call is not recorded. */
#define RECORD_OR_PASS_REAL(call, symbol, arguments) \
    FIND_LIBRARY(symbol); \
    struct ensio_thread *thread = &ensio_thread; \
    if (!recorded(hdf5, thread, CALL_##call, __builtin_frame_address(0))) \
    return REAL(symbol) arguments

#define KNOWN(name, id) \
    const int error_before = errno; \
    struct ensio_object name = ensio_hdf5_object(hdf5, (id)); \
    errno = error_before

/* All calls carry their bytes in both directions: HDF5 moves data when it sees fit, also in calls that close or flush,
 * and the data have counted when the program read or wrote them. */
#define CARRIES (ENSIO_CARRIES_READ | ENSIO_CARRIES_WRITE)
#define TIMED_OUTERMOST(result, call) \
    ensio_hdf5_frame = __builtin_frame_address(0); \
    TIMED_CARRYING(thread, CARRIES, result, call); \
    ensio_hdf5_frame = NULL; \
    const int error = errno; \
    const int64_t failure = (result) < 0 ? -ENSIO_NO_ERRNO : 0

#define NO_AMOUNT ((struct ensio_hdf5_amount){.bytes = 0, .offset = -1})
#define SELECTED ensio_hdf5_selected(hdf5, &object, memory, space, result >= 0)
#define ALL_SELECTED ensio_hdf5_all_selected(hdf5, count, sets, memories, spaces, result >= 0)
#define FIRST (count && sets ? sets[0] : -1)
#define CHUNK (result < 0 ? NO_AMOUNT : ensio_hdf5_chunk(hdf5, set, offset))
#define GIVEN ((struct ensio_hdf5_amount){.bytes = bytes, .offset = -1})
#define WHOLE ensio_hdf5_attribute(hdf5, attribute)

#define OPEN_FILE(call, symbol, parameters, arguments, name) \
    WRAPPER(int64_t, symbol, parameters) \
    { \
        RECORD_OR_PASS_REAL(call, symbol, arguments); \
        int64_t result; \
        TIMED_OUTERMOST(result, REAL(symbol) arguments); \
        struct ensio_object file = ensio_hdf5_file_opened(hdf5, result, name); \
        const int is_writable = CALL_##call == CALL_H5Fcreate || flags & 1; /* H5F_ACC_RDWR */ \
        file.access = ENSIO_OPENED_TO_READ | (is_writable ? ENSIO_OPENED_TO_WRITE : 0); \
        ensio_object_store(thread, CALL_##call, &file, -1, 0, failure, start, duration); \
        errno = error; \
        return result; \
    }

#define OPEN(call, symbol, parameters, arguments, location) \
    WRAPPER(int64_t, symbol, parameters) \
    { \
        RECORD_OR_PASS_REAL(call, symbol, arguments); \
        KNOWN(from, location); \
        int64_t result; \
        TIMED_OUTERMOST(result, REAL(symbol) arguments); \
        if (result >= 0) \
            from = ensio_hdf5_opened(hdf5, result, &from); \
        ensio_object_store(thread, CALL_##call, &from, -1, 0, failure, start, duration); \
        errno = error; \
        return result; \
    }

#define ON_OBJECT(call, symbol, parameters, arguments, id) \
    WRAPPER(int, symbol, parameters) \
    { \
        RECORD_OR_PASS_REAL(call, symbol, arguments); \
        KNOWN(known, id); \
        int result; \
        TIMED_OUTERMOST(result, REAL(symbol) arguments); \
        ensio_object_store(thread, CALL_##call, &known, -1, 0, failure, start, duration); \
        errno = error; \
        return result; \
    }

#define TRANSFER(call, symbol, parameters, arguments, id, amount_) \
    WRAPPER(int, symbol, parameters) \
    { \
        RECORD_OR_PASS_REAL(call, symbol, arguments); \
        KNOWN(object, id); \
        int result; \
        TIMED_OUTERMOST(result, REAL(symbol) arguments); \
        const int64_t stack = result < 0 ? hdf5->Eget_current_stack() : -1; \
        const struct ensio_hdf5_amount amount = (amount_); \
        if (stack >= 0) \
            hdf5->Eset_current_stack(stack); \
        ensio_object_store(thread, CALL_##call, &object, amount.offset, amount.bytes, \
                           failure ? failure : (int64_t)amount.bytes, start, duration); \
        errno = error; \
        return result; \
    }

#define CLOSE(call, symbol) \
    WRAPPER(int, symbol, (int64_t id)) \
    { \
        RECORD_OR_PASS_REAL(call, symbol, (id)); \
        KNOWN(object, id); \
        int result; \
        TIMED_OUTERMOST(result, REAL(symbol)(id)); \
        if (result >= 0) \
            ensio_object_forget(hdf5->number, id); \
        ensio_object_store(thread, CALL_##call, &object, -1, 0, failure, start, duration); \
        errno = error; \
        return result; \
    }

/* Most hids are not files or objects in files, and are unknown here. */
#define RELEASE(call, symbol) \
    WRAPPER(int, symbol, (int64_t id)) \
    { \
        RECORD_OR_PASS_REAL(call, symbol, (id)); \
        const struct ensio_object object = ensio_object_find(hdf5->number, id); \
        if (!object.generation) \
            return REAL(symbol)(id); \
        int result; \
        TIMED_OUTERMOST(result, REAL(symbol)(id)); \
        if (result == 0) \
            ensio_object_forget(hdf5->number, id); \
        if (result <= 0) \
            ensio_object_store(thread, CALL_##call, &object, -1, 0, failure, start, duration); \
        errno = error; \
        return result; \
    }

/* Closes all files, whose bytes it carries. It is not in the table, so no event is around those of the calls inside. */
#define RESTART(symbol) \
    WRAPPER(int, symbol, (void)) \
    { \
        FIND_LIBRARY(symbol); \
        struct ensio_thread *thread = &ensio_thread; \
        int result; \
        if (recorded(hdf5, thread, CALL_H5Fclose, __builtin_frame_address(0))) { \
            TIMED_CARRYING(thread, CARRIES, result, REAL(symbol)()); \
            (void)duration; \
        } else { \
            result = REAL(symbol)(); \
        } \
        ensio_object_forget_all(hdf5->number); \
        return result; \
    }

#include <calls/hdf5.def>
