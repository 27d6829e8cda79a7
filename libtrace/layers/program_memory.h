/* program_memory.h: safe reads of memory that the program passed to a call.
 *
 * A successful call has read its path, so the recorder may read it too. A failed call may not have read it: the pointer
 * may be invalid, and the program just gets an errno. None of these functions faults, takes a lock or changes errno. */
#ifndef ENSIO_LAYERS_PROGRAM_MEMORY_H
#define ENSIO_LAYERS_PROGRAM_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of a path, including its end, that the kernel reads. */
#define ENSIO_LONGEST_PATH 4096

/* Whether the bytes from an address to the end of its page are readable. Costs a system call. */
int ensio_readable(const void *at);

/* The length of a path, without its end, at most `most`; -1 if the memory ends first. `trusted`: the call has read the
 * path. */
int64_t ensio_path_length(const char *path, uint32_t most, int trusted);

/* The number of bytes at the beginning of a path that a result at `to` does not overwrite. */
static inline uint32_t ensio_path_before(const char *path, const void *to)
{
    const uintptr_t before = (uintptr_t)to - (uintptr_t)path;
    return before < ENSIO_LONGEST_PATH ? (uint32_t)before : ENSIO_LONGEST_PATH;
}

/* Whether a path begins in the memory that receives the result of the call. */
static inline int ensio_path_in_result(const char *path, const void *to, size_t room)
{
    return (uintptr_t)path - (uintptr_t)to < room;
}

#endif
