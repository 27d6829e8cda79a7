/* scope.h: which files are under the model: those in the folders of ENSIO_PFS_ROOT, however deep, but for those in its
 * folders that begin with '!'.
 *
 * A descriptor is asked for its file each time. That costs some 2 us, where what is added to the call is a hundred
 * times as much, and is never out of date. None of these changes errno, and none touches memory of the program that is
 * not there.
 */
#ifndef ENSIO_SHIM_SCOPE_H
#define ENSIO_SHIM_SCOPE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What a descriptor stands for. */
struct shim_file {
    uint64_t key; /* of the path below the folder of ENSIO_PFS_ROOT */
    mode_t mode;
    int64_t size, block_bytes;
};

/* Reads a colon-separated list of folders. How many there are. */
int shim_scope_read(const char *list);

/* 1: a file or folder under the model. */
int shim_descriptor_in_scope(int fd, struct shim_file *file);

/* The same of a path as a program gives it; the file need not be there. A path through a symbolic link that is not
 * itself one of the folders is not followed. */
int shim_path_in_scope(int folder, const char *path, uint64_t *key);

/* Copies memory of the program that may not be there; how many bytes could be read. */
size_t shim_peek(void *to, const void *from, size_t bytes);

#endif
