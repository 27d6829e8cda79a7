/* c_wrappers.c: the wrappers of the C interfaces of NetCDF and PnetCDF (which_library.h), generated from their tables;
 * compiled once for preload, and once for each part for --wrap. */
#include "loaded_netcdf.h"
#include "wrapping.h"

#if ENSIO_OF_PNETCDF
#include <layers/mpi/driver_prefix.h>
#include <layers/mpi/query.h>
#endif

#ifdef ENSIO_PRELOAD
enum {
#define SYMBOL(symbol) FUNCTION_##symbol,
#include CALLS
#undef SYMBOL
    FUNCTIONS
};
static const char *const names[] = {
#define SYMBOL(symbol) #symbol,
#include CALLS
#undef SYMBOL
};
#undef CALL
static struct ensio_netcdf_kind kind = {
    .kind = {.index = KIND,
             .probe = PROBE,
             .named = NAMED,
             .part_bytes = sizeof(struct ensio_netcdf_library) + FUNCTIONS * sizeof(void *),
             .fill = ensio_netcdf_fill},
    .identity = {IDENTITY},
    .prefix = C_PREFIX,
    .names = names,
    .functions = FUNCTIONS,
};
#else
#define LIBRARY LINKED
#endif

/* The functions for text take no type: all arguments up to the sixth are passed in registers, and one too many does no
 * harm. */
#define PUT_ATTRIBUTE_PARAMETERS \
    (int file, int variable, const char *name, uintptr_t type_or_length, uintptr_t length_or_data, const void *data)
#define PUT_ATTRIBUTE_ARGUMENTS (file, variable, name, type_or_length, length_or_data, data)

#define ONE ensio_netcdf_elements(&made, file, variable, 1)
#define WHOLE ensio_netcdf_whole(&made, file, variable)
#define REGION ensio_netcdf_region(&made, file, variable, count)

#if ENSIO_OF_PNETCDF
/* PnetCDF reads no list of a call on an unknown file. */
__attribute__((unused)) static uint64_t each(struct ensio_netcdf_call *call, int file, int number, const int *variables,
                                             const int64_t *const *counts, int whole)
{
    uint64_t bytes = 0;
    for (int i = 0; call->file.generation && i < number && variables; i++)
        bytes += counts  ? ensio_netcdf_region(call, file, variables[i], counts[i])
                 : whole ? ensio_netcdf_whole(call, file, variables[i])
                         : ensio_netcdf_elements(call, file, variables[i], 1);
    return bytes;
}

#define REGIONS ensio_netcdf_regions(&made, file, variable, regions, counts)
#define EACH_WHOLE each(&made, file, number, variables, NULL, 1)
#define EACH_ONE each(&made, file, number, variables, NULL, 0)
#define EACH_REGION each(&made, file, number, variables, counts, 0)
#define TYPE_REGION (result ? 0 : (uint64_t)ensio_mpi_type_bytes(region))
#define PATH ensio_without_driver(path)
#else
#define PATH path
#endif

#define OPEN(symbol, call, parameters, arguments) \
    WRAPPER(symbol, CALL_##call, parameters, arguments, ENSIO_NETCDF_NO_FILE, \
            ensio_netcdf_opened(&made, result ? NULL : file, PATH))
#define ON_FILE(symbol, call, parameters, arguments) WRAPPER(symbol, CALL_##call, parameters, arguments, file, 0)
#define CLOSE(symbol, call, parameters, arguments) \
    WRAPPER(symbol, CALL_##call, parameters, arguments, file, ensio_netcdf_closed(&made, file, result))
#define START(symbol, call, parameters, arguments, bytes) \
    START_WRAPPER(symbol, CALL_##call, parameters, arguments, file, bytes, request)
#define COMPLETE(symbol, call, parameters, arguments) \
    WAIT_WRAPPER(symbol, CALL_##call, parameters, arguments, file, 1, count, requests)
#define CANCEL(symbol, call, parameters, arguments) \
    WAIT_WRAPPER(symbol, CALL_##call, parameters, arguments, file, 0, count, requests)
#define TRANSFER(symbol, call, parameters, arguments, bytes) \
    WRAPPER(symbol, CALL_##call, parameters, arguments, file, bytes)

#include CALLS
