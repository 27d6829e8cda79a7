/* files.h: the numbers that stand for paths in events. */
#ifndef ENSIO_FILES_H
#define ENSIO_FILES_H

#include <stdint.h>

/* The number of a path, given at its first appearance and stored in the spool; 0 where no space or memory is left. The
 * caller holds the lock. */
uint32_t ensio_file_number(const char *path);

/* Stores all paths again, in the spool of a forked child, whose descriptors go on with the parent's numbers. */
void ensio_files_store_again(void);

#endif
