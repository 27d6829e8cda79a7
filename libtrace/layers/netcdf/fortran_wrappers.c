/* fortran_wrappers.c: the wrappers of the Fortran interfaces of NetCDF and PnetCDF (which_library.h), for relinked
 * programs; generated from their tables, compiled once for each part.
 *
 * All arguments are addresses, except for the lengths of strings, which come last. No function has more than eleven,
 * and each wrapper passes as many on: what lies behind a function's own arguments is never read. Ids of variables and
 * dimensions begin with 1, so the library is queried by its Fortran interface. */
#include "module_arrays.h"
#include "wrapping.h"

#define LIBRARY LINKED_FORTRAN

#define PARAMETERS \
    (uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f, uintptr_t g, uintptr_t h, \
     uintptr_t i, uintptr_t j, uintptr_t k, uintptr_t l, uintptr_t m, uintptr_t n, uintptr_t o, uintptr_t p, \
     uintptr_t q, uintptr_t r)
#define ARGUMENTS (a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r)
#define FILE_ID (*(const int *)a)
#define ARGUMENT_3 c
#define ARGUMENT_4 d
#define ARGUMENT_5 e

/* Bytes of a region; its counts have the integers of the interface. */
__attribute__((unused)) static uint64_t region_bytes(struct ensio_netcdf_call *call, int file, int variable,
                                                     const ensio_fortran_index *counts, int regions)
{
    const struct ensio_netcdf *const netcdf = call->netcdf;
    int dimensions = 0;
    uint64_t elements = 0;
    if (netcdf->inq_varndims(file, variable, &dimensions) != 0)
        return 0;
    for (int i = 0; i < regions; i++) {
        uint64_t here = 1;
        for (int at = 0; at < dimensions; at++)
            here = ensio_netcdf_product(here, counts[at] > 0 ? (uint64_t)counts[at] : 0);
        elements += here;
        counts += dimensions;
    }
    return ensio_netcdf_elements(call, file, variable, elements);
}

#define CALL_FILE_VARIABLE &made, FILE_ID, *(const int *)b
#define ONE ensio_netcdf_elements(CALL_FILE_VARIABLE, 1)
#define WHOLE ensio_netcdf_whole(CALL_FILE_VARIABLE)
#define REGION region_bytes(CALL_FILE_VARIABLE, (const ensio_fortran_index *)d, 1)
#define REGIONS region_bytes(CALL_FILE_VARIABLE, (const ensio_fortran_index *)e, *(const int *)c)

/* The library knows the path that it opened. A failed call has no file. */
#define OPENS(call, symbol, place) \
    WRAPPER(symbol, CALL_##call, PARAMETERS, ARGUMENTS, ENSIO_NETCDF_NO_FILE, \
            ensio_netcdf_opened_id(&made, result ? NULL : (const int *)ARGUMENT_##place))
#define ON_FILE(call, symbol) WRAPPER(symbol, CALL_##call, PARAMETERS, ARGUMENTS, FILE_ID, 0)
#define CLOSES(call, symbol) \
    WRAPPER(symbol, CALL_##call, PARAMETERS, ARGUMENTS, FILE_ID, ensio_netcdf_closed(&made, FILE_ID, result))
#define STARTS(call, symbol, bytes, place) \
    START_WRAPPER(symbol, CALL_##call, PARAMETERS, ARGUMENTS, FILE_ID, bytes, (const int *)(place))
#define WAITS(call, symbol, completes, requests) \
    WAIT_WRAPPER(symbol, CALL_##call, PARAMETERS, ARGUMENTS, FILE_ID, completes, *(const int *)b, requests)
#define COMPLETES(call, symbol) WAITS(call, symbol, 1, (const int *)c)
#define CANCELS(call, symbol) WAITS(call, symbol, 0, (const int *)c)
#define MODULE_COMPLETES(call, symbol) WAITS(call, symbol, 1, ensio_module_numbers((const void *)c))
#define MODULE_CANCELS(call, symbol) WAITS(call, symbol, 0, ensio_module_numbers((const void *)c))
#define MOVES(call, symbol, bytes) WRAPPER(symbol, CALL_##call, PARAMETERS, ARGUMENTS, FILE_ID, bytes)
#define MOVES_LATER(call, symbol, bytes) \
    extern int real_##symbol PARAMETERS __asm__("__real_" #symbol) __attribute__((weak)); \
    MOVES(call, symbol, bytes)

/* Generic procedures of the modules take a variable's values and, all optional, start, count, stride and map; those
 * that return a request have it before these. The call is the one that they make for these arguments. */
#define TEXT (-1)
#define MODULE_BYTES(rank, counts, length) \
    ensio_netcdf_elements(CALL_FILE_VARIABLE, \
                          ensio_module_elements((const void *)c, rank, rank ? (const void *)(counts) : NULL, length))
/* Numbers of the calls put_var, _var1, _vara, _vars, _varm follow each other; requests have no var1 and no varm. Text
 * is moved by _vars. */
#define OF_FORM(call, rank, stride, map) \
    (uint16_t)(CALL_##call + ((rank) == 0 ? 1 : (map) ? 4 : (stride) || (rank) < 0 ? 3 : 2))
#define OF_REQUEST(call, rank, stride, map) \
    (uint16_t)(CALL_##call + ((rank) == 0 ? 0 : (map) || (stride) || (rank) < 0 ? 2 : 1))
#define MODULE_MOVES(call, symbol, rank) \
    WRAPPER(symbol, OF_FORM(call, rank, f, g), PARAMETERS, ARGUMENTS, FILE_ID, MODULE_BYTES(rank, e, h))
#define MODULE_STARTS(call, symbol, rank) \
    START_WRAPPER(symbol, OF_REQUEST(call, rank, g, h), PARAMETERS, ARGUMENTS, FILE_ID, MODULE_BYTES(rank, f, i), \
                  (const int *)d)

#include FORTRAN_CALLS
