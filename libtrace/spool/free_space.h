/* free_space.h: the free space where the spools lie. */
#ifndef ENSIO_SPOOL_FREE_SPACE_H
#define ENSIO_SPOOL_FREE_SPACE_H

#include <stdint.h>

/* Bytes of the file system, or of the tightest quota of this user or group on it. */
struct ensio_free_space {
    uint64_t total;
    uint64_t free;
};

/* Prepares the query, once for each spool. The caller holds the lock and is in ensio_with_private_files. */
void ensio_free_space_begin(void);

/* Asks the kernel: 0, or -1 if the space cannot be known (for example after a chroot). Opens no file. The caller holds
 * the lock. */
int ensio_free_space_query(struct ensio_free_space *space);

#endif
