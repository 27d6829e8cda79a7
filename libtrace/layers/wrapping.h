/* wrapping.h: wrappers for relinked programs and for preload, from the same source.
 *
 * In a program that is relinked with --wrap, calls go to __wrap_X, and the linker binds __real_X to the function. The
 * preload library defines X and looks up the next X in the process. In C, wrappers are called ensio_X in both cases;
 * their linker names are assigned separately, so that they do not conflict with declarations in headers. */
#ifndef ENSIO_LAYERS_WRAPPING_H
#define ENSIO_LAYERS_WRAPPING_H

#include <stddef.h>

#ifdef ENSIO_PRELOAD

/* The next definition of a function in the process, after the wrapper, or NULL. */
void *ensio_resolve(const char *symbol);

/* A data object of the process, or NULL. The program's copy takes precedence over the library's. */
void *ensio_resolve_object(const char *symbol);

/* The symbol is still unresolved before the recorder has begun, and in a library that was loaded later. */
static inline void *ensio_bound(void **real, const char *symbol)
{
    if (__builtin_expect(!*real, 0))
        *real = ensio_resolve(symbol);
    return *real;
}

/* Another tool that precedes us for MPI_X calls PMPI_X. The same wrappers are therefore compiled again under these
 * names. */
#ifdef ENSIO_PROFILING_NAMES
#define ENSIO_LINK_NAME(symbol) "P" #symbol
#else
#define ENSIO_LINK_NAME(symbol) #symbol
#endif
#define ENSIO_REAL_DECLARE(type, symbol, parameters) \
    typedef type ensio_type_##symbol parameters; \
    static void *real_##symbol;
#define ENSIO_OF_WRAPPERS
#define ENSIO_REAL(symbol) ((ensio_type_##symbol *)ensio_bound(&real_##symbol, ENSIO_LINK_NAME(symbol)))
#define ENSIO_MAY_BE_MISSING(type, symbol, parameters)

#else

#define ENSIO_LINK_NAME(symbol) "__wrap_" #symbol
#define ENSIO_REAL_DECLARE(type, symbol, parameters) extern type real_##symbol parameters __asm__("__real_" #symbol);
#define ENSIO_REAL(symbol) real_##symbol
/* The preloaded recorder skips frames of wrappers when it looks for callers (process/peer_recorder.c). The linker names
 * the bounds of a section with such a name. */
#define ENSIO_OF_WRAPPERS , section("ensio_wrappers")
/* No program calls a wrapper whose function the C library lacks. */
#define ENSIO_MAY_BE_MISSING(type, symbol, parameters) \
    extern type real_##symbol parameters __asm__("__real_" #symbol) __attribute__((weak));

#endif

#define ENSIO_DEFINE(type, symbol, parameters) \
    __attribute__((visibility("default") ENSIO_OF_WRAPPERS)) \
    type ensio_##symbol parameters __asm__(ENSIO_LINK_NAME(symbol)); \
    type ensio_##symbol parameters
#define ENSIO_WRAPPER(type, symbol, parameters) \
    ENSIO_REAL_DECLARE(type, symbol, parameters) \
    ENSIO_DEFINE(type, symbol, parameters)

#endif
