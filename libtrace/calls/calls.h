/* calls.h: what the core needs to know of the call tables. */
#ifndef ENSIO_CALLS_H
#define ENSIO_CALLS_H

/* The dictionary of calls, as it goes into a spool: a line for each, "number name layer op". */
extern const char ensio_calls[];

/* Leaves out the calls of layers that the comma-separated list does not name. */
void ensio_calls_choose(const char *layers);

/* Finds the functions behind the wrappers, where the linker has not tied them. */
void ensio_calls_resolve(void);

/* The same, for each table. */
void ensio_posix_resolve(void);
void ensio_stdio_resolve(void);

#endif
