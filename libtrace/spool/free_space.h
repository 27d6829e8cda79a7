/* free_space.h: how much room is left where the spools lie. */
#ifndef ENSIO_SPOOL_FREE_SPACE_H
#define ENSIO_SPOOL_FREE_SPACE_H

#include <stdint.h>

/* Bytes of the file system, or of the tightest quota of this user or group that is set on it. */
struct ensio_free_space {
    uint64_t total;
    uint64_t free;
};

/* Finds out what is to be asked later: once for each spool, where a file may be opened (private_files.h). The caller
 * holds the lock. */
void ensio_free_space_begin(void);

/* Asks the kernel; 0, or -1 where it cannot be known any more (after a chroot, say). Opens no file. The caller holds
 * the lock. */
int ensio_free_space_query(struct ensio_free_space *space);

#endif
