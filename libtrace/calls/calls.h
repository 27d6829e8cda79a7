/* calls.h: what the core needs to know of the call tables. */
#ifndef ENSIO_CALLS_H
#define ENSIO_CALLS_H

/* The dictionary of calls, as it goes into a spool: a line for each, "number name layer op". */
extern const char ensio_calls[];

/* Finds the functions behind the wrappers, where the linker has not tied them. */
void ensio_calls_resolve(void);

#endif
