/* netcdf_wrappers.c: the wrappers of NetCDF's C interface, generated from its table; compiled once for preload, and
 * once for each part for --wrap. */
#include "wrapping.h"

#include <dlfcn.h>

enum {
#define CALL(number, call, op) CALL_##call = (number),
#include <calls/netcdf.def>
};
#undef CALL
#undef SYMBOL

#define LAYER ENSIO_NETCDF

#ifdef ENSIO_PRELOAD
enum {
#define SYMBOL(symbol) ENSIO_FUNCTION_##symbol,
#include <calls/netcdf.def>
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
#include <calls/netcdf.def>
#undef SYMBOL
    };
    struct library *library = part;
    library->netcdf = (struct ensio_netcdf){.number = number, .id_shift = 16};
    for (size_t i = 0; i < FUNCTIONS; i++)
        library->functions[i] = dlsym(handle, names[i]);
#define ASK(name, parameters) library->netcdf.name = (int(*) parameters)dlsym(handle, "nc_" #name);
    ENSIO_NETCDF_QUERIES(ASK)
    library->netcdf.inq_type = (int (*)(int, int, char *, size_t *))dlsym(handle, "nc_inq_type");
}
#undef CALL

static struct ensio_library_kind kind = {.index = ENSIO_NETCDF_LIBRARY,
                                         .probe = "nc_put_vara",
                                         .named = "netcdf",
                                         .part_bytes = sizeof(struct library),
                                         .fill = fill};
#else
extern const struct ensio_netcdf ensio_netcdf_linked;
#define LINKED ensio_netcdf_linked
#endif

#define OPEN(symbol, call, parameters, arguments) OPEN_WRAPPER(symbol, call, parameters, arguments, path, file)
#define ON_FILE(symbol, call, parameters, arguments) CALL_WRAPPER(symbol, call, parameters, arguments, file, (void)0)
#define CLOSE(symbol, call, parameters, arguments) \
    CALL_WRAPPER(symbol, call, parameters, arguments, file, if (result == 0) ensio_netcdf_forget(netcdf, file))
#define TRANSFER(symbol, call, parameters, arguments, bytes) \
    TRANSFER_WRAPPER(symbol, call, parameters, arguments, file, bytes)

#include <calls/netcdf.def>
