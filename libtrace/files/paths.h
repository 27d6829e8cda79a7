/* paths.h: the numbers that stand for paths in events. */
#ifndef ENSIO_FILES_PATHS_H
#define ENSIO_FILES_PATHS_H

#include <stdint.h>

/* What stands for paths beyond those that a process keeps: behind a folder's path and a slash, for those below it;
 * alone, for all others. */
#define ENSIO_OTHER_PATHS "(other paths)"

/* The number of a path, given at its first appearance and stored in the spool; of paths beyond those that a process
 * keeps, that of the nearest folder's (other paths); 0 where no space or memory is left. The caller holds the lock. */
uint32_t ensio_file_number(const char *path);

/* Sees to it that a path is in this process's spool: a forked child goes on with its parent's numbers. 0, or -1 where
 * no space is left. The caller holds the lock. */
int ensio_file_store(uint32_t number);

/* The path of a number, which stays where it is; NULL for 0. */
const char *ensio_file_path(uint32_t number);

/* Whether this was not asked before about the file in this process, and it is one file. The caller holds the lock. */
int ensio_file_is_first_opened(uint32_t number);

#endif
