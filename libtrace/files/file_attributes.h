/* file_attributes.h: attributes of a file, queried when this process opens it for the first time. */
#ifndef ENSIO_FILES_FILE_ATTRIBUTES_H
#define ENSIO_FILES_FILE_ATTRIBUTES_H

#include "names.h"

#include <fcntl.h>
#include <stdint.h>

/* Stores what does not follow from the file's path and the table of mounts: the mount to which a symbolic link led,
 * Lustre's striping, and the block size of each mount once. `fd` is open, so no query can hang in a file system that
 * the program does not use. Takes the lock if there is something to store. */
void ensio_file_attributes(int fd, uint32_t file, uint64_t mount, int is_regular);

/* Flags of open with which writes wait for the device. O_SYNC includes O_DSYNC. */
#define ENSIO_BYPASSING (O_DSYNC | O_DIRECT)

/* The same as a flag of an open file, and of the events of its writes. */
static inline int ensio_waits_for_device(int flags)
{
    return flags & ENSIO_BYPASSING ? ENSIO_WAITS_FOR_DEVICE : 0;
}

/* Stores once in a process with which of these flags it opened a file. */
void ensio_file_opened_with(const struct ensio_named *named, int flags);

#endif
