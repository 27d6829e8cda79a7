/* scope.h: the files under the model: those in the folders of ENSIO_PFS_ROOT and below, except in its folders that
 * begin with '!'.
 *
 * The file of a descriptor is looked up at each call. That costs about 2 us, a hundredth of the typical delay, and is
 * never out of date. None of these functions changes errno, and none faults on invalid memory of the program. */
#ifndef ENSIO_SHIM_SCOPE_H
#define ENSIO_SHIM_SCOPE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The file of a descriptor. */
struct shim_file {
    uint64_t key; /* of the path below the folder of ENSIO_PFS_ROOT */
    mode_t mode;
    int64_t size, block_bytes;
};

/* Reads a colon-separated list of folders. Returns their number. */
int shim_scope_read(const char *list);

/* 1: a file or folder under the model. */
int shim_descriptor_in_scope(int fd, struct shim_file *file);

/* The same for a path that a program passes; the file need not exist. A path through a symbolic link that is not itself
 * one of the folders is not followed. */
int shim_path_in_scope(int folder, const char *path, uint64_t *key);

/* Copies memory of the program that may be unmapped. Returns the number of readable bytes. */
size_t shim_peek(void *to, const void *from, size_t bytes);

#endif
