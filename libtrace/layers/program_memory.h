/* program_memory.h: what may be read of the memory that a program's call was given.
 *
 * A call that succeeded has read its path, so that memory may be read too. A call that failed need not have looked at
 * it: the pointer may be a bad one, and the program gets its errno all the same. None of these faults, takes a lock or
 * changes errno.
 */
#ifndef ENSIO_LAYERS_PROGRAM_MEMORY_H
#define ENSIO_LAYERS_PROGRAM_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of a path, its end included, that the kernel looks at. */
#define ENSIO_LONGEST_PATH 4096

/* Whether the bytes at an address can be read, as far as its page goes. Costs a system call. */
int ensio_readable(const void *at);

/* The length of a path, without its end, at most `most`; -1: the memory ends before the path does. `trusted`: the call
 * that it was given to has read it. */
int64_t ensio_path_length(const char *path, uint32_t most, int trusted);

/* How many bytes of a path, from its beginning on, a result that is put at `to` leaves as they are. */
static inline uint32_t ensio_path_before(const char *path, const void *to)
{
    const uintptr_t before = (uintptr_t)to - (uintptr_t)path;
    return before < ENSIO_LONGEST_PATH ? (uint32_t)before : ENSIO_LONGEST_PATH;
}

/* Whether a path begins in the memory in which the call is going to put its result. */
static inline int ensio_path_in_result(const char *path, const void *to, size_t room)
{
    return (uintptr_t)path - (uintptr_t)to < room;
}

#endif
