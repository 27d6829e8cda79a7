/* wrapping.h: macros that the wrappers of NetCDF and of PnetCDF share.
 *
 * A file of wrappers defines LAYER, KIND_OF_LIBRARY (preload) or LINKED, and includes its table after this header.
 * Calls that a library makes to its own functions are not recorded. Its calls to HDF5, MPI-IO and POSIX are recorded
 * with a larger depth. They carry their bytes in both directions: a library moves data when it sees fit, also in calls
 * that close or synchronise a file, and the data have counted when the program put or got them. */
#ifndef ENSIO_LAYERS_NETCDF_WRAPPING_H
#define ENSIO_LAYERS_NETCDF_WRAPPING_H

#include "netcdf.h"
#include "requests.h"

#include <layers/loaded_libraries.h>
#include <layers/recording.h>
#include <layers/wrapping.h>

#include <errno.h>

/* netcdf: the library, whose functions REAL calls. A function of the same name that belongs to no such library is
 * called as it is. */
#ifdef ENSIO_PRELOAD
#define DECLARE(symbol, parameters) typedef int ensio_type_##symbol parameters;
#define REAL(symbol) ((ensio_type_##symbol *)library->functions[ENSIO_FUNCTION_##symbol])
#define FIND_LIBRARY(symbol, arguments) \
    const struct library *const library = ensio_library_of(&kind, __builtin_return_address(0)); \
    if (ENSIO_UNLIKELY(!library || !REAL(symbol))) { \
        ensio_type_##symbol *const other = (ensio_type_##symbol *)ensio_resolve(#symbol); \
        return other ? other arguments : ENSIO_NETCDF_MISSING; \
    } \
    const struct ensio_netcdf *const netcdf = &library->netcdf
#define ENSIO_NETCDF_MISSING (-36) /* NC_EINVAL */
#else
#define DECLARE(symbol, parameters) extern int real_##symbol parameters __asm__("__real_" #symbol);
#define REAL(symbol) real_##symbol
#define FIND_LIBRARY(symbol, arguments) const struct ensio_netcdf *const netcdf = &LINKED
/* `request`: where the library put the number of the request. */
#define START_WRAPPER(symbol, call, parameters, arguments, id, bytes_, request) \
    WRAPPER(symbol, parameters) \
    { \
        RECORD_OR_PASS_REAL(call, symbol, arguments); \
        KNOWN_FILE(known, id); \
        int result; \
        TIMED_OUTERMOST(result, REAL(symbol) arguments); \
        const uint64_t bytes = (bytes_); \
        ensio_netcdf_store(thread, CALL_##call, &known, bytes, result, start, duration); \
        if (result == 0) \
            ensio_netcdf_posted(thread, netcdf, CALL_##call, id, request, start, duration); \
        errno = error; \
        return result; \
    }

/* `waits`: it completes requests, and does not cancel them. */
#define WAIT_WRAPPER(symbol, call, parameters, arguments, id, waits, count, requests) \
    WRAPPER(symbol, parameters) \
    { \
        RECORD_OR_PASS_REAL(call, symbol, arguments); \
        KNOWN_FILE(known, id); \
        struct ensio_netcdf_wait wait = \
            ensio_netcdf_wait_begin(netcdf, (waits) ? CALL_##call : 0, id, count, requests); \
        int result; \
        TIMED_OUTERMOST(result, REAL(symbol) arguments); \
        ensio_netcdf_wait_end(thread, &wait, result, start, duration); \
        ensio_netcdf_store(thread, CALL_##call, &known, 0, result, start, duration); \
        errno = error; \
        return result; \
    }

#endif

#define WRAPPER(symbol, parameters) \
    DECLARE(symbol, parameters) \
    __attribute__((visibility("default"))) int ensio_##symbol parameters __asm__(ENSIO_LINK_NAME(symbol)); \
    int ensio_##symbol parameters

/* Calls only the real function if the call is not recorded. */
#define RECORD_OR_PASS_REAL(call, symbol, arguments) \
    FIND_LIBRARY(symbol, arguments); \
    struct ensio_thread *thread = &ensio_thread; \
    const char *const outermost = ensio_netcdf_frames[LAYER]; \
    if (ensio_unwanted_calls[CALL_##call] || (outermost && (char *)__builtin_frame_address(0) < outermost) || \
        !ensio_ready(thread)) \
    return REAL(symbol) arguments

#define TIMED_OUTERMOST(result, call) \
    ensio_netcdf_frames[LAYER] = __builtin_frame_address(0); \
    TIMED_CARRYING(thread, ENSIO_CARRIES_READ | ENSIO_CARRIES_WRITE, result, call); \
    ensio_netcdf_frames[LAYER] = NULL; \
    const int error = errno

#define KNOWN_FILE(known, id) \
    const int error_before = errno; \
    const struct ensio_object known = ensio_netcdf_file(netcdf, id); \
    errno = error_before

/* Bytes of a part of `variable` of `file`. */
#define BYTES(elements) ensio_netcdf_bytes(netcdf, file, variable, elements)
#define ONE BYTES(1)
#define WHOLE BYTES(ensio_netcdf_whole(netcdf, file, variable))
#define REGION BYTES(ensio_netcdf_region(netcdf, file, variable, count))

/* The functions for text take no type: all arguments up to the sixth are passed in registers, and one too many does no
 * harm. */
#define PUT_ATTRIBUTE_PARAMETERS \
    (int file, int variable, const char *name, uintptr_t type_or_length, uintptr_t length_or_data, const void *data)
#define PUT_ATTRIBUTE_ARGUMENTS (file, variable, name, type_or_length, length_or_data, data)

#define OPEN_WRAPPER(symbol, call, parameters, arguments, path, id) \
    WRAPPER(symbol, parameters) \
    { \
        RECORD_OR_PASS_REAL(call, symbol, arguments); \
        int result; \
        TIMED_OUTERMOST(result, REAL(symbol) arguments); \
        const struct ensio_object opened = ensio_netcdf_opened(netcdf, result ? NULL : (id), path); \
        ensio_netcdf_store(thread, CALL_##call, &opened, 0, result, start, duration); \
        errno = error; \
        return result; \
    }

#define CALL_WRAPPER(symbol, call, parameters, arguments, id, after) \
    WRAPPER(symbol, parameters) \
    { \
        RECORD_OR_PASS_REAL(call, symbol, arguments); \
        KNOWN_FILE(known, id); \
        int result; \
        TIMED_OUTERMOST(result, REAL(symbol) arguments); \
        after; \
        ensio_netcdf_store(thread, CALL_##call, &known, 0, result, start, duration); \
        errno = error; \
        return result; \
    }

#define TRANSFER_WRAPPER(symbol, call, parameters, arguments, id, bytes_) \
    WRAPPER(symbol, parameters) \
    { \
        RECORD_OR_PASS_REAL(call, symbol, arguments); \
        KNOWN_FILE(known, id); \
        int result; \
        TIMED_OUTERMOST(result, REAL(symbol) arguments); \
        const uint64_t bytes = (bytes_); \
        ensio_netcdf_store(thread, CALL_##call, &known, bytes, result, start, duration); \
        errno = error; \
        return result; \
    }

/* `request`: where the library put the number of the request. */
#define START_WRAPPER(symbol, call, parameters, arguments, id, bytes_, request) \
    WRAPPER(symbol, parameters) \
    { \
        RECORD_OR_PASS_REAL(call, symbol, arguments); \
        KNOWN_FILE(known, id); \
        int result; \
        TIMED_OUTERMOST(result, REAL(symbol) arguments); \
        const uint64_t bytes = (bytes_); \
        ensio_netcdf_store(thread, CALL_##call, &known, bytes, result, start, duration); \
        if (result == 0) \
            ensio_netcdf_posted(thread, netcdf, CALL_##call, id, request, start, duration); \
        errno = error; \
        return result; \
    }

/* `waits`: it completes requests, and does not cancel them. */
#define WAIT_WRAPPER(symbol, call, parameters, arguments, id, waits, count, requests) \
    WRAPPER(symbol, parameters) \
    { \
        RECORD_OR_PASS_REAL(call, symbol, arguments); \
        KNOWN_FILE(known, id); \
        struct ensio_netcdf_wait wait = \
            ensio_netcdf_wait_begin(netcdf, (waits) ? CALL_##call : 0, id, count, requests); \
        int result; \
        TIMED_OUTERMOST(result, REAL(symbol) arguments); \
        ensio_netcdf_wait_end(thread, &wait, result, start, duration); \
        ensio_netcdf_store(thread, CALL_##call, &known, 0, result, start, duration); \
        errno = error; \
        return result; \
    }

#endif
