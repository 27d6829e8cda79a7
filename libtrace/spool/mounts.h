/* mounts.h: the mounts of the node, as the process sees them. */
#ifndef ENSIO_SPOOL_MOUNTS_H
#define ENSIO_SPOOL_MOUNTS_H

#include <stdint.h>

#define ENSIO_MOUNT_POINT_ROOM 256

/* One mount, as /proc/self/mountinfo tells of it: with blanks, tabs, line ends and backslashes as \040 and the like. */
struct ensio_mount {
    const char *id, *device, *point, *type, *source;
};

/* Calls `each` for every mount until it returns other than 0. What it is given lasts until it returns. The caller holds
 * the lock, and is where a file may be opened (private_files.h). */
void ensio_each_mount(int (*each)(const struct ensio_mount *mount, void *state), void *state);

/* A mount that files of the program lie on. */
struct ensio_known_mount {
    uint64_t id;
    int is_lustre;
    int is_known;                       /* its block size is stored */
    char point[ENSIO_MOUNT_POINT_ROOM]; /* "": it is not in the table of mounts */
};

/* Reads the table of mounts, once, where a file may be opened (private_files.h). The caller holds the lock. */
void ensio_mounts_read(void);

/* The mount of an open file, whose block size is stored when it is seen first; NULL where it cannot be known. The
 * caller holds the lock. */
const struct ensio_known_mount *ensio_mount_of(int fd);

#endif
