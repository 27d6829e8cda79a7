/* wrapping.h: macros that the wrappers of all interfaces of NetCDF and PnetCDF share.
 *
 * Calls that a library makes to its own functions are not recorded. Its calls to HDF5, MPI-IO and POSIX are recorded
 * with a larger depth. */
#ifndef ENSIO_LAYERS_NETCDF_WRAPPING_H
#define ENSIO_LAYERS_NETCDF_WRAPPING_H

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

/* `number`: of the call, which is `made`; `id`: of its file, or ENSIO_NETCDF_NO_FILE. `bytes` is evaluated after it. */
#define WRAPPER(symbol, number, parameters, arguments, id, bytes) \
    DECLARE(symbol, parameters) \
    __attribute__((visibility("default"))) int ensio_##symbol parameters __asm__(ENSIO_LINK_NAME(symbol)); \
    int ensio_##symbol parameters \
    { \
        struct ensio_netcdf_call made; \
        BEGIN(symbol, number, id); \
        const int result = REAL(symbol) arguments; \
        return ensio_netcdf_returned(&made) ? ensio_netcdf_end(&made, result, bytes) : result; \
    }

#endif
