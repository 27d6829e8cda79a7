/* calls.h: what the core needs to know of the call tables. */
#ifndef ENSIO_CALLS_CALLS_H
#define ENSIO_CALLS_CALLS_H

#include <stddef.h>
#include <stdint.h>

/* The dictionary of calls, as it goes into a spool: a line for each, "number name layer op". */
extern const char ensio_calls[];

/* What calls do. */
enum {
    ENSIO_OP_NONE,
    ENSIO_OP_READ,
    ENSIO_OP_WRITE,
    ENSIO_OP_OPEN,
    ENSIO_OP_CLOSE,
    ENSIO_OP_SEEK,
    ENSIO_OP_SYNC,
    ENSIO_OP_META,
    ENSIO_OP_WAIT
};

/* By the number of a call: what it does; ENSIO_OP_NONE: there is no such call. */
extern const uint8_t ensio_call_ops[];

/* The name of a call, in `name`. */
void ensio_call_name(uint16_t call, char *name, size_t room);

/* Leaves out the calls of layers that the comma-separated list does not name. */
void ensio_calls_choose(const char *layers);

/* Finds the functions behind the wrappers, where the linker has not tied them. */
void ensio_calls_resolve(void);

/* The same, for each table. */
void ensio_posix_resolve(void);
void ensio_tracked_only_resolve(void);
void ensio_mmap_resolve(void);
void ensio_aio_resolve(void);
void ensio_stdio_resolve(void);

#endif
