/* calls.h: the call tables, for the rest of the recorder. */
#ifndef ENSIO_CALLS_CALLS_H
#define ENSIO_CALLS_CALLS_H

#include <stddef.h>
#include <stdint.h>

/* The dictionary of calls in a spool: a line "number name layer op" for each. */
extern const char ensio_calls[];

/* Operations of calls. */
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

/* Calls in the order of the tables: an index without gaps, for arrays by call. */
enum {
#define CALL(number, call, op) ENSIO_INDEX_##call,
#include "tables.def"
#undef CALL
#undef SYMBOL
    ENSIO_CALL_COUNT
};

/* By index. What is inside a call of posix is its other half, whose bytes move in the other direction. */
#define ENSIO_IS_POSIX(index) ((index) < ENSIO_INDEX_fopen) /* the first call of the second table */

/* The number of a call by its index, and the index by its number. */
extern const uint16_t ensio_call_numbers[ENSIO_CALL_COUNT];
extern const uint16_t ensio_call_indices[];
#define ENSIO_CALL_INDICES 512
_Static_assert(ENSIO_CALL_COUNT <= ENSIO_CALL_INDICES, "there are more calls than indices");

/* Operations by call number; ENSIO_OP_NONE: there is no such call. */
extern const uint8_t ensio_call_ops[];

/* By call number: 1 if the call waits for other tasks, and not for I/O. */
extern const uint8_t ensio_call_waits_for_tasks[];

/* Writes the name of a call to `name`. */
void ensio_call_name(uint16_t call, char *name, size_t room);

/* Excludes the calls of layers that are not in the comma-separated list. "default" stands for all but mpimsg. */
void ensio_calls_choose(const char *layers);

/* Finds the functions behind the wrappers, in the preload library. */
void ensio_calls_resolve(void);

/* The same for each table. */
void ensio_posix_resolve(void);
void ensio_tracked_only_resolve(void);
void ensio_mmap_resolve(void);
void ensio_aio_resolve(void);
void ensio_stdio_resolve(void);

#endif
