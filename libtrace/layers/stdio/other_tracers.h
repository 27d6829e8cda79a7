/* other_tracers.h: other tracers in the process, which like the preload library stand between the program and the C
 * library. */
#ifndef ENSIO_LAYERS_STDIO_OTHER_TRACERS_H
#define ENSIO_LAYERS_STDIO_OTHER_TRACERS_H

#ifdef ENSIO_PRELOAD

/* Finds the tracers before and behind the preload library, among the libraries that were loaded with the program. */
void ensio_other_tracers_find(void);

/* Whether a call of ftell comes from another tracer, on its own behalf. Darshan asks so after each fseek and fscanf of
 * the program. `caller`: where the call returns to. */
int ensio_tracer_tells(const void *caller);

#else

/* In a relinked program only the program's own calls come by. */
static inline int ensio_tracer_tells(const void *caller)
{
    return 0;
}

#endif

#endif
