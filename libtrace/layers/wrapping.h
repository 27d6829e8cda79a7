/* wrapping.h: the two ways in, from one source.
 *
 * Relinked with --wrap, the program calls __wrap_X, and the linker ties __real_X to the function itself. Preloaded, the
 * library defines X, and looks for the next X in the process. Wrappers are called ensio_X in C either way; their names
 * for the linker are set apart, so that no header's declaration stands in the way.
 */
#ifndef ENSIO_LAYERS_WRAPPING_H
#define ENSIO_LAYERS_WRAPPING_H

#include <stddef.h>

#ifdef ENSIO_PRELOAD

/* The next definition of a function in the process, behind the wrapper; NULL where there is none. */
void *ensio_resolve(const char *symbol);

/* A data object of the process; NULL where there is none. The program's own copy of it goes before the library's. */
void *ensio_resolve_object(const char *symbol);

/* Before the recorder has begun, and where a library was loaded after it had, the symbol is not looked up yet. */
static inline void *ensio_bound(void **real, const char *symbol)
{
    if (__builtin_expect(!*real, 0))
        *real = ensio_resolve(symbol);
    return *real;
}

/* Another tool that stands before us for MPI_X calls PMPI_X: the same wrappers, compiled once more under these names.
 */
#ifdef ENSIO_PROFILING_NAMES
#define ENSIO_LINK_NAME(symbol) "P" #symbol
#else
#define ENSIO_LINK_NAME(symbol) #symbol
#endif
#define ENSIO_REAL_DECLARE(type, symbol, parameters) \
    typedef type ensio_type_##symbol parameters; \
    static void *real_##symbol;
#define ENSIO_REAL(symbol) ((ensio_type_##symbol *)ensio_bound(&real_##symbol, ENSIO_LINK_NAME(symbol)))
#define ENSIO_MAY_BE_MISSING(type, symbol, parameters)

#else

#define ENSIO_LINK_NAME(symbol) "__wrap_" #symbol
#define ENSIO_REAL_DECLARE(type, symbol, parameters) extern type real_##symbol parameters __asm__("__real_" #symbol);
#define ENSIO_REAL(symbol) real_##symbol
/* Nobody calls a wrapper whose function the C library does not have. */
#define ENSIO_MAY_BE_MISSING(type, symbol, parameters) \
    extern type real_##symbol parameters __asm__("__real_" #symbol) __attribute__((weak));

#endif

#define ENSIO_WRAPPER(type, symbol, parameters) \
    ENSIO_REAL_DECLARE(type, symbol, parameters) \
    __attribute__((visibility("default"))) type ensio_##symbol parameters __asm__(ENSIO_LINK_NAME(symbol)); \
    type ensio_##symbol parameters

#endif
