/* paths.h: numbers of paths, as events hold them. */
#ifndef ENSIO_FILES_PATHS_H
#define ENSIO_FILES_PATHS_H

#include <stdint.h>

/* Stands for paths beyond those that a process keeps: after a folder's path and a slash, for paths below the folder;
 * alone, for all others. */
#define ENSIO_OTHER_PATHS "(other paths)"

/* The number of a path, assigned and stored in the spool at its first use. A path beyond the limit gets the number of
 * its nearest folder's "(other paths)". 0 without space or memory. */
uint32_t ensio_file_number(const char *path);

/* Stores a path in this process's spool if it is missing there, because a forked child keeps its parent's numbers. 0,
 * or -1 without space. */
int ensio_file_store(uint32_t number);

/* The path of a number; NULL for 0. It stays valid. */
const char *ensio_file_path(uint32_t number);

/* Calls a file that the kernel named as deleted by the path of another number from now on. */
void ensio_file_linked(uint32_t number, uint32_t to);

/* Whether a number stands for a single file. */
int ensio_file_is_single(uint32_t number);

/* Whether this is the first such query about the file in this process, and the number stands for a single file. The
 * caller holds the lock. */
int ensio_file_is_first_opened(uint32_t number);

#endif
