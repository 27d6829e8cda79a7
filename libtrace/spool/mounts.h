/* mounts.h: the mounts of the node, as the process sees them. */
#ifndef ENSIO_SPOOL_MOUNTS_H
#define ENSIO_SPOOL_MOUNTS_H

#include <stdint.h>

#define ENSIO_MOUNT_POINT_ROOM 256

/* One mount, as in /proc/self/mountinfo: blanks, tabs, newlines and backslashes are escaped as \040 and the like. */
struct ensio_mount {
    const char *id, *device, *point, *type, *source;
};

/* Calls `each` for every mount until it returns nonzero. Its argument is valid only during the call. The caller holds
 * the lock and is in ensio_with_private_files. */
void ensio_each_mount(int (*each)(const struct ensio_mount *mount, void *state), void *state);

/* From the first to the second of these calls, the table is read from the kernel only once. The same conditions. */
void ensio_mounts_keep(void);
void ensio_mounts_keep_no_more(void);

#define ENSIO_NO_MOUNT 0 /* the kernel does not say */

/* A mount that holds files of the program. */
struct ensio_known_mount {
    uint64_t id;
    int is_lustre;
    int is_known;                       /* stored last: its block size is stored */
    char point[ENSIO_MOUNT_POINT_ROOM]; /* "": the table of mounts does not list it */
};

/* What is mounted somewhere on the node. */
struct ensio_mounted {
    int nfs, lustre;
    char cgroup[ENSIO_MOUNT_POINT_ROOM]; /* where cgroups of version 2 are; "": nowhere */
};
extern struct ensio_mounted ensio_mounted;

/* Reads the table of mounts, once. The caller holds the lock and is in ensio_with_private_files. */
void ensio_mounts_read(void);

/* The mount with this identifier if a file on it was opened before, or NULL. */
const struct ensio_known_mount *ensio_mount_seen(uint64_t id);

/* The mount of an open file, or NULL if it is unknown. The first use of a mount stores its block size. The caller holds
 * the lock. */
const struct ensio_known_mount *ensio_mount_of(int fd, uint64_t id);

#endif
