/* file_attributes.h: what is asked about a file when this process opens it for the first time. */
#ifndef ENSIO_FILES_FILE_ATTRIBUTES_H
#define ENSIO_FILES_FILE_ATTRIBUTES_H

#include <stdint.h>

/* Stores what cannot be told from the file's path and the table of mounts: on which mount it lies where a symbolic link
 * led there, and how Lustre stripes it; and of each mount, once, its block size. `fd` is open, so that none of it can
 * hang in a file system that the program does not use. The caller holds the lock. */
void ensio_file_attributes(int fd, uint32_t file, const char *path, int is_regular);

/* Stores facts, "key=value" strings each ended by a NUL, about the file of this number. The caller holds the lock. */
void ensio_file_attributes_store(uint32_t file, const char *facts, uint32_t length);

#endif
