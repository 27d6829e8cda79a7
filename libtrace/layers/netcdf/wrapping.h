/* wrapping.h: macros that the wrappers of all interfaces of NetCDF and PnetCDF share.
 *
 * Calls that a library makes to its own functions are not recorded. Its calls to HDF5, MPI-IO and POSIX are recorded
 * with a larger depth. */
#ifndef ENSIO_LAYERS_NETCDF_WRAPPING_H
#define ENSIO_LAYERS_NETCDF_WRAPPING_H

#include "requests.h"
#include "which_library.h"

#include <layers/wrapping.h>

enum {
#define CALL(number, call, op) CALL_##call = (number),
#include CALLS
};
#undef CALL
#undef SYMBOL

#ifdef ENSIO_PRELOAD
#define DECLARE(symbol, parameters) typedef int ensio_type_##symbol parameters;
#define BEGIN(symbol, number, id) \
    ensio_type_##symbol *const real = \
        (ensio_type_##symbol *)ensio_netcdf_begin_loaded(&made, &kind, (uint32_t)FUNCTION_##symbol << 16 | (number), \
                                                         id, __builtin_frame_address(0), __builtin_return_address(0))
#define REAL(symbol) real
#else
#define DECLARE(symbol, parameters) extern int real_##symbol parameters __asm__("__real_" #symbol);
#define BEGIN(symbol, number, id) ensio_netcdf_begin(&made, &LIBRARY, number, id, __builtin_frame_address(0))
#define REAL(symbol) real_##symbol
#endif

/* `number`: of the call, which is `made`; `id`: of its file, or ENSIO_NETCDF_NO_FILE. `before` is done before the real
 * function, `end` after it. */
#define WRAPPER_AROUND(symbol, number, parameters, arguments, id, before, end) \
    DECLARE(symbol, parameters) \
    ENSIO_DEFINE(int, symbol, parameters) \
    { \
        struct ensio_netcdf_call made; \
        BEGIN(symbol, number, id); \
        before; \
        const int result = REAL(symbol) arguments; \
        return ensio_netcdf_returned(&made) ? (end) : result; \
    }

/* `bytes` is evaluated after the call. */
#define WRAPPER(symbol, number, parameters, arguments, id, bytes) \
    WRAPPER_AROUND(symbol, number, parameters, arguments, id, (void)0, ensio_netcdf_end(&made, result, bytes))

/* `request`: where the library puts the number of the request that the call posts. */
#define START_WRAPPER(symbol, number, parameters, arguments, id, bytes, request) \
    WRAPPER_AROUND(symbol, number, parameters, arguments, id, (void)0, \
                   ensio_netcdf_end_post(&made, result, bytes, id, request))

/* `completes`: the call completes requests, and does not cancel them. */
#define WAIT_WRAPPER(symbol, number, parameters, arguments, id, completes, count, requests) \
    WRAPPER_AROUND(symbol, number, parameters, arguments, id, \
                   struct ensio_netcdf_wait wait = ensio_netcdf_wait_begin(&made, completes, id, count, requests), \
                   ensio_netcdf_end_wait(&made, result, &wait))

#endif
