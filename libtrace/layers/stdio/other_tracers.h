/* other_tracers.h: other tracers in the process that, like the preload library, intercept calls to the C library. */
#ifndef ENSIO_LAYERS_STDIO_OTHER_TRACERS_H
#define ENSIO_LAYERS_STDIO_OTHER_TRACERS_H

#ifdef ENSIO_PRELOAD

/* Finds the tracers before and after the preload library, among the libraries that were loaded with the program. */
void ensio_other_tracers_find(void);

/* Whether another tracer makes this call of ftell for its own purposes, as Darshan does after each fseek and fscanf of
 * the program. `caller`: the return address. */
int ensio_tracer_tells(const void *caller);

#else

/* A relinked program wraps only its own calls. */
static inline int ensio_tracer_tells(const void *caller)
{
    return 0;
}

#endif

#endif
