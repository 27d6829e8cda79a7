/* fortran_wrappers.c: the wrappers of the Fortran interfaces of NetCDF and, with ENSIO_OF_PNETCDF, of PnetCDF, for
 * relinked programs; generated from their tables, compiled once for each part.
 *
 * All arguments are addresses, except for the lengths of strings, which come last. No function has more than eleven,
 * and each wrapper passes as many on: what lies behind a function's own arguments is never read. Ids of variables and
 * dimensions begin with 1, so the library is queried by its Fortran interface. */
#include "wrapping.h"

#include "module_arrays.h"

#if ENSIO_OF_PNETCDF
#define TABLE <calls/pnetcdf.def>
#define FORTRAN_TABLE <calls/pnetcdf_fortran.def>
#define LAYER ENSIO_PNETCDF
#define LINKED ensio_pnetcdf_linked_fortran
typedef int64_t ensio_index;
#else
#define TABLE <calls/netcdf.def>
#define FORTRAN_TABLE <calls/netcdf_fortran.def>
#define LAYER ENSIO_NETCDF
#define LINKED ensio_netcdf_linked_fortran
typedef int32_t ensio_index;
#endif

extern const struct ensio_netcdf LINKED;

enum {
#define CALL(number, call, op) CALL_##call = (number),
#include TABLE
};
#undef CALL
#undef SYMBOL

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
__attribute__((unused)) static uint64_t region_bytes(const struct ensio_netcdf *netcdf, int file, int variable,
                                                     const ensio_index *counts, int regions)
{
    int dimensions = 0;
    uint64_t elements = 0;
    if (netcdf->inq_varndims(file, variable, &dimensions) != 0)
        return 0;
    for (int i = 0; i < regions; i++) {
        uint64_t here = 1;
        for (int at = 0; at < dimensions; at++)
            here *= counts[at] > 0 ? (uint64_t)counts[at] : 0;
        elements += here;
        counts += dimensions;
    }
    return BYTES(elements);
}

#undef ONE
#undef WHOLE
#undef REGION
#define FILE_AND_VARIABLE netcdf, FILE_ID, *(const int *)b
#define ONE ensio_netcdf_bytes(FILE_AND_VARIABLE, 1)
#define WHOLE ensio_netcdf_bytes(FILE_AND_VARIABLE, ensio_netcdf_whole(FILE_AND_VARIABLE))
#define REGION region_bytes(FILE_AND_VARIABLE, (const ensio_index *)d, 1)
#define REGIONS region_bytes(FILE_AND_VARIABLE, (const ensio_index *)e, *(const int *)c)

/* The library knows the path that it opened. A failed call has no file. */
#define OPENS(call, symbol, place) \
    WRAPPER(symbol, PARAMETERS) \
    { \
        RECORD_OR_PASS_REAL(call, symbol, ARGUMENTS); \
        int result; \
        TIMED_OUTERMOST(result, REAL(symbol) ARGUMENTS); \
        struct ensio_object opened = ensio_object_unknown(netcdf->number, -1); \
        if (result == 0) { \
            ensio_netcdf_forget(netcdf, *(const int *)ARGUMENT_##place); \
            opened = ensio_netcdf_file(netcdf, *(const int *)ARGUMENT_##place); \
        } \
        ensio_netcdf_store(thread, CALL_##call, &opened, 0, result, start, duration); \
        errno = error; \
        return result; \
    }
#define ON_FILE(call, symbol) CALL_WRAPPER(symbol, call, PARAMETERS, ARGUMENTS, FILE_ID, (void)0)
#define CLOSES(call, symbol) \
    CALL_WRAPPER( \
        symbol, call, PARAMETERS, ARGUMENTS, FILE_ID, if (result == 0) { \
            ensio_netcdf_give_up(thread, netcdf, FILE_ID); \
            ensio_netcdf_forget(netcdf, FILE_ID); \
        })
#define STARTS(call, symbol, bytes, place) \
    START_WRAPPER(symbol, call, PARAMETERS, ARGUMENTS, FILE_ID, bytes, (const int *)(place))
#define COMPLETES(call, symbol) \
    WAIT_WRAPPER(symbol, call, PARAMETERS, ARGUMENTS, FILE_ID, 1, *(const int *)b, (const int *)c)
#define CANCELS(call, symbol) \
    WAIT_WRAPPER(symbol, call, PARAMETERS, ARGUMENTS, FILE_ID, 0, *(const int *)b, (const int *)c)
#define MOVES(call, symbol, bytes) TRANSFER_WRAPPER(symbol, call, PARAMETERS, ARGUMENTS, FILE_ID, bytes)
#define MOVES_LATER(call, symbol, bytes) \
    extern int real_##symbol PARAMETERS __asm__("__real_" #symbol) __attribute__((weak)); \
    MOVES(call, symbol, bytes)
#define MODULE_REQUESTS ensio_module_numbers((const void *)c)
#define MODULE_COMPLETES(call, symbol) \
    WAIT_WRAPPER(symbol, call, PARAMETERS, ARGUMENTS, FILE_ID, 1, *(const int *)b, MODULE_REQUESTS)
#define MODULE_CANCELS(call, symbol) \
    WAIT_WRAPPER(symbol, call, PARAMETERS, ARGUMENTS, FILE_ID, 0, *(const int *)b, MODULE_REQUESTS)

/* Generic procedures of the modules take a variable's values and, all optional, start, count, stride and map; those
 * that return a request have it before these. The call is the one that they make for these arguments. */
#define TEXT (-1)
#define MODULE_TRANSFER(number, call, symbol, rank, start_, count_, stride_, map_, length, posts) \
    WRAPPER(symbol, PARAMETERS) \
    { \
        RECORD_OR_PASS_REAL(call, symbol, ARGUMENTS); \
        KNOWN_FILE(known, FILE_ID); \
        int result; \
        TIMED_OUTERMOST(result, REAL(symbol) ARGUMENTS); \
        const uint64_t elements = \
            ensio_module_elements((const void *)c, rank, rank ? (const void *)(count_) : NULL, length); \
        ensio_netcdf_store(thread, number, &known, ensio_netcdf_bytes(FILE_AND_VARIABLE, elements), result, start, \
                           duration); \
        if ((posts) && result == 0) \
            ensio_netcdf_posted(thread, netcdf, number, FILE_ID, (const int *)d, start, duration); \
        errno = error; \
        return result; \
    }
/* Numbers of the calls put_var, _var1, _vara, _vars, _varm follow each other; requests have no var1 and no varm. Text
 * is moved by _vars. */
#define OF_FORM(call, rank, stride, map) \
    (uint16_t)(CALL_##call + ((rank) == 0 ? 1 : (map) ? 4 : (stride) || (rank) < 0 ? 3 : 2))
#define OF_REQUEST(call, rank, stride, map) \
    (uint16_t)(CALL_##call + ((rank) == 0 ? 0 : (map) || (stride) || (rank) < 0 ? 2 : 1))
#define MODULE_MOVES(call, symbol, rank) \
    MODULE_TRANSFER(OF_FORM(call, rank, f, g), call, symbol, rank, d, e, f, g, h, 0)
#define MODULE_STARTS(call, symbol, rank) \
    MODULE_TRANSFER(OF_REQUEST(call, rank, g, h), call, symbol, rank, e, f, g, h, i, 1)

#include FORTRAN_TABLE
