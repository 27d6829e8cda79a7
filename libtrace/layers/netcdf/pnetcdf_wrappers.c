/* netcdf_wrappers.c: the wrappers of NetCDF's C interface, generated from its table; compiled once for preload, and
 * once for each part for --wrap. */
#include "wrapping.h"

#include <layers/mpi/driver_prefix.h>
#include <layers/mpi/query.h>

#include <dlfcn.h>

enum {
#define CALL(number, call, op) CALL_##call = (number),
#include <calls/pnetcdf.def>
};
#undef CALL
#undef SYMBOL

#define LAYER ENSIO_PNETCDF

#ifdef ENSIO_PRELOAD
enum {
#define SYMBOL(symbol) ENSIO_FUNCTION_##symbol,
#include <calls/pnetcdf.def>
#undef SYMBOL
    FUNCTIONS
};
#undef CALL

struct library {
    struct ensio_netcdf netcdf;
    void *functions[FUNCTIONS]; /* NULL: the library lacks it */
};

static void fill(void *part, void *handle, uint32_t number)
{
    static const char *const names[] = {
#define SYMBOL(symbol) #symbol,
#include <calls/pnetcdf.def>
#undef SYMBOL
    };
    struct library *library = part;
    library->netcdf = (struct ensio_netcdf){.number = number};
    for (size_t i = 0; i < FUNCTIONS; i++)
        library->functions[i] = dlsym(handle, names[i]);
#define ASK(name, parameters) library->netcdf.name = (int(*) parameters)dlsym(handle, "ncmpi_" #name);
    ENSIO_NETCDF_QUERIES(ASK)
}
#undef CALL

static struct ensio_library_kind kind = {.index = ENSIO_PNETCDF_LIBRARY,
                                         .probe = "ncmpi_put_vara",
                                         .named = "pnetcdf",
                                         .part_bytes = sizeof(struct library),
                                         .fill = fill};
#else
extern const struct ensio_netcdf ensio_pnetcdf_linked;
#define LINKED ensio_pnetcdf_linked
#endif

__attribute__((unused)) static uint64_t each(const struct ensio_netcdf *netcdf, int file, int number,
                                             const int *variables, const int64_t *const *counts, int whole)
{
    uint64_t bytes = 0;
    for (int i = 0; i < number && variables; i++) {
        const int variable = variables[i];
        bytes += counts ? BYTES(ensio_netcdf_region(netcdf, file, variable, counts[i])) : whole ? WHOLE : ONE;
    }
    return bytes;
}

#define REGIONS BYTES(ensio_netcdf_regions(netcdf, file, variable, regions, counts))
#define EACH_WHOLE each(netcdf, file, number, variables, NULL, 1)
#define EACH_ONE each(netcdf, file, number, variables, NULL, 0)
#define EACH_REGION each(netcdf, file, number, variables, counts, 0)
#define TYPE_REGION (uint64_t) ensio_mpi_type_bytes(region)

#define OPEN(symbol, call, parameters, arguments) \
    OPEN_WRAPPER(symbol, call, parameters, arguments, ensio_without_driver(path), file)
#define ON_FILE(symbol, call, parameters, arguments) CALL_WRAPPER(symbol, call, parameters, arguments, file, (void)0)
#define CLOSE(symbol, call, parameters, arguments) \
    CALL_WRAPPER( \
        symbol, call, parameters, arguments, file, if (result == 0) { \
            ensio_netcdf_give_up(thread, netcdf, file); \
            ensio_netcdf_forget(netcdf, file); \
        })
#define COMPLETE(symbol, call, parameters, arguments) \
    WAIT_WRAPPER(symbol, call, parameters, arguments, file, 1, count, requests)
#define CANCEL(symbol, call, parameters, arguments) \
    WAIT_WRAPPER(symbol, call, parameters, arguments, file, 0, count, requests)
#define START(symbol, call, parameters, arguments, bytes) \
    START_WRAPPER(symbol, call, parameters, arguments, file, bytes, request)
#define TRANSFER(symbol, call, parameters, arguments, bytes) \
    TRANSFER_WRAPPER(symbol, call, parameters, arguments, file, bytes)

#include <calls/pnetcdf.def>
