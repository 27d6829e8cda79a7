#include "peer_recorder.h"

#include "lifecycle.h"

#include <core/recorder.h>
#include <core/settings.h>
#include <sites/modules.h>

#include <stddef.h>

typedef void mark_function(int what, const char *name);
typedef void leave_function(void);
typedef void skip_function(const char *start, const char *end);

#ifdef ENSIO_PRELOAD

extern mark_function ensio_mark;

/* The recorder in the program looks these up when it begins. The preload library began earlier. */
__attribute__((visibility("default"))) mark_function ensio_preloaded_mark;
__attribute__((visibility("default"))) leave_function ensio_preloaded_leave;
__attribute__((visibility("default"))) skip_function ensio_preloaded_skip;

void ensio_preloaded_mark(int what, const char *name)
{
    ensio_mark(what, name);
}

void ensio_preloaded_leave(void)
{
    ensio_end();
    ensio_settings.off = 1;
    __atomic_store_n(&ensio_process->generation, 0, __ATOMIC_RELEASE);
}

void ensio_preloaded_skip(const char *start, const char *end)
{
    ensio_wrappers_serve(start, end);
}

#else

/* Weak: a static program has no dlsym and needs none, and an older C library has it in a separate library. */
static void *linked_dlsym(void *handle, const char *symbol) __attribute__((weakref("dlsym")));

extern const char __executable_start[], etext[]; /* of GNU's linker, LLVM's, gold and mold */
extern const char __start_ensio_wrappers[], __stop_ensio_wrappers[];

/* A function of each library whose layer is linked. */
#define LAYERS(LAYER) LAYER(mpi) LAYER(hdf5) LAYER(netcdf) LAYER(netcdf_fortran) LAYER(pnetcdf) LAYER(pnetcdf_fortran)
#define MAY_BE_LINKED(layer) extern const void *const ensio_function_of_##layer __attribute__((weak));
LAYERS(MAY_BE_LINKED)

static mark_function *pass_on;

static void *found(const char *symbol)
{
    return linked_dlsym ? linked_dlsym(NULL, symbol) : NULL;
}

int ensio_yields_to_peer(void)
{
    union {
        void *object;
        mark_function *mark;
        leave_function *leave;
        skip_function *skip;
    } preloaded = {.object = found("ensio_preloaded_mark")};
    if (!preloaded.object)
        return 0;
#define IN_PROGRAM(layer) \
    || (&ensio_function_of_##layer && (const char *)ensio_function_of_##layer >= __executable_start && \
        (const char *)ensio_function_of_##layer < etext)
    if (0 LAYERS(IN_PROGRAM)) {
        preloaded.object = found("ensio_preloaded_leave");
        preloaded.leave();
        return 0;
    }
    pass_on = preloaded.mark;
    preloaded.object = found("ensio_preloaded_skip");
    if (preloaded.object) /* an older one lacks it */
        preloaded.skip(__start_ensio_wrappers, __stop_ensio_wrappers);
    return 1;
}

int ensio_mark_forwarded(int what, const char *name)
{
    if (pass_on)
        pass_on(what, name);
    return pass_on != NULL;
}

#endif
