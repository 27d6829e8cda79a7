/* fuse_operations.h: the operations of the FUSE file system: each is carried out in the backing folder and takes the
 * model's time. */
#ifndef ENSIO_SHIM_FUSE_OPERATIONS_H
#define ENSIO_SHIM_FUSE_OPERATIONS_H

#define FUSE_USE_VERSION 312

#include "delay.h"

#include <errno.h>
#include <fuse.h>
#include <stdint.h>

extern struct shim_state *shim_fuse_state;
extern int shim_fuse_backing; /* the backing folder, opened before anything is mounted over it */

struct shim_fuse_file {
    uint64_t key;
    int fd;
    int through;
};

static inline struct shim_fuse_file *shim_fuse_file(const struct fuse_file_info *info)
{
    return (struct shim_fuse_file *)(uintptr_t)info->fh;
}

/* A path of FUSE, relative to the backing folder. */
static inline const char *shim_fuse_relative(const char *path)
{
    return path[1] ? path + 1 : ".";
}

/* Begins a call of the process that makes the request. */
struct shim_ticket shim_fuse_begin(struct shim_call call);

/* Gives a new file to the user who makes it, because the file system runs as another user. */
int shim_fuse_give_away(const char *path);

/* A request to the metadata server around an operation that returns 0, or -1 and errno. */
#define SHIM_FUSE_META(call) \
    const struct shim_ticket ticket = shim_fuse_begin((struct shim_call){.operation = PFS_META}); \
    const int result = (call) < 0 ? -errno : 0; \
    shim_wait(shim_fuse_state, ticket); \
    return result

int fs_getattr(const char *path, struct stat *status, struct fuse_file_info *info);
int fs_readlink(const char *path, char *to, size_t room);
int fs_mkdir(const char *path, mode_t mode);
int fs_unlink(const char *path);
int fs_rmdir(const char *path);
int fs_symlink(const char *target, const char *path);
int fs_rename(const char *from, const char *to, unsigned flags);
int fs_link(const char *from, const char *to);
int fs_chmod(const char *path, mode_t mode, struct fuse_file_info *info);
int fs_chown(const char *path, uid_t user, gid_t group, struct fuse_file_info *info);
int fs_truncate(const char *path, off_t length, struct fuse_file_info *info);
int fs_utimens(const char *path, const struct timespec times[2], struct fuse_file_info *info);
int fs_opendir(const char *path, struct fuse_file_info *info);
int fs_readdir(const char *path, void *to, fuse_fill_dir_t fill, off_t offset, struct fuse_file_info *info,
               enum fuse_readdir_flags flags);
int fs_releasedir(const char *path, struct fuse_file_info *info);
int fs_statfs(const char *path, struct statvfs *status);

int fs_open(const char *path, struct fuse_file_info *info);
int fs_create(const char *path, mode_t mode, struct fuse_file_info *info);
int fs_read(const char *path, char *to, size_t bytes, off_t offset, struct fuse_file_info *info);
int fs_write(const char *path, const char *from, size_t bytes, off_t offset, struct fuse_file_info *info);
int fs_fsync(const char *path, int data_only, struct fuse_file_info *info);
int fs_flush(const char *path, struct fuse_file_info *info);
int fs_release(const char *path, struct fuse_file_info *info);
int fs_fallocate(const char *path, int mode, off_t offset, off_t bytes, struct fuse_file_info *info);

#endif
