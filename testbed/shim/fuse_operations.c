#include "fuse_operations.h"

#include <core/bounded_string.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static uint64_t key_of(const char *path)
{
    return ensio_hash(path) | 1;
}

/* The kernel, which knows the size, handles O_APPEND; direct I/O would require aligned memory here. */
static int open_at(const char *path, int flags, mode_t mode, uint16_t operation, struct fuse_file_info *info)
{
    const struct shim_ticket ticket = shim_fuse_begin((struct shim_call){.operation = operation, .key = key_of(path)});
    const int fd =
        openat(shim_fuse_backing, shim_fuse_relative(path), (flags & ~(O_APPEND | O_DIRECT)) | O_CLOEXEC, mode);
    struct shim_fuse_file *file = fd < 0 ? NULL : malloc(sizeof *file);
    const int error = fd < 0 ? errno : ENOMEM;
    if (fd >= 0 && !file)
        close(fd);
    if (file) {
        *file = (struct shim_fuse_file){
            .key = key_of(path), .fd = fd, .through = (flags & (O_SYNC | O_DSYNC | O_DIRECT)) != 0};
        info->fh = (uintptr_t)file;
        info->direct_io = 1;
    }
    shim_wait(shim_fuse_state, ticket);
    return file ? 0 : -error;
}

int fs_open(const char *path, struct fuse_file_info *info)
{
    return open_at(path, info->flags, 0, PFS_OPEN, info);
}

int fs_create(const char *path, mode_t mode, struct fuse_file_info *info)
{
    const int result = open_at(path, info->flags | O_CREAT, mode, PFS_CREATE, info);
    if (result == 0)
        (void)!shim_fuse_give_away(path);
    return result;
}

int fs_read(const char *path, char *to, size_t bytes, off_t offset, struct fuse_file_info *info)
{
    (void)path;
    struct stat status;
    int64_t there = fstat(shim_fuse_file(info)->fd, &status) == 0 ? status.st_size - offset : 0;
    if (there <= 0)
        return 0;
    const struct shim_ticket ticket = shim_fuse_begin((struct shim_call){
        .operation = PFS_READ,
        .key = shim_fuse_file(info)->key,
        .offset = offset,
        .bytes = there < (int64_t)bytes ? there : (int64_t)bytes,
    });
    const ssize_t got = pread(shim_fuse_file(info)->fd, to, bytes, offset);
    const int result = got < 0 ? -errno : (int)got;
    shim_wait(shim_fuse_state, ticket);
    return result;
}

int fs_write(const char *path, const char *from, size_t bytes, off_t offset, struct fuse_file_info *info)
{
    (void)path;
    const struct shim_ticket ticket = shim_fuse_begin((struct shim_call){
        .operation = PFS_WRITE,
        .through = (uint16_t)shim_fuse_file(info)->through,
        .key = shim_fuse_file(info)->key,
        .offset = offset,
        .bytes = (int64_t)bytes,
    });
    const ssize_t put = pwrite(shim_fuse_file(info)->fd, from, bytes, offset);
    const int result = put < 0 ? -errno : (int)put;
    shim_wait(shim_fuse_state, ticket);
    return result;
}

int fs_fsync(const char *path, int data_only, struct fuse_file_info *info)
{
    (void)path;
    const struct shim_ticket ticket =
        shim_fuse_begin((struct shim_call){.operation = PFS_SYNC, .key = shim_fuse_file(info)->key});
    const int result =
        (data_only ? fdatasync(shim_fuse_file(info)->fd) : fsync(shim_fuse_file(info)->fd)) < 0 ? -errno : 0;
    shim_wait(shim_fuse_state, ticket);
    return result;
}

/* At each close; release comes later, when no caller waits for it. */
int fs_flush(const char *path, struct fuse_file_info *info)
{
    (void)path;
    shim_wait(shim_fuse_state,
              shim_fuse_begin((struct shim_call){.operation = PFS_CLOSE, .key = shim_fuse_file(info)->key}));
    return 0;
}

int fs_release(const char *path, struct fuse_file_info *info)
{
    (void)path;
    close(shim_fuse_file(info)->fd);
    free(shim_fuse_file(info));
    return 0;
}

int fs_fallocate(const char *path, int mode, off_t offset, off_t bytes, struct fuse_file_info *info)
{
    (void)path;
    SHIM_FUSE_META(fallocate(shim_fuse_file(info)->fd, mode, offset, bytes));
}

int fs_getattr(const char *path, struct stat *status, struct fuse_file_info *info)
{
    SHIM_FUSE_META(info ? fstat(shim_fuse_file(info)->fd, status)
                        : fstatat(shim_fuse_backing, shim_fuse_relative(path), status, AT_SYMLINK_NOFOLLOW));
}

int fs_readlink(const char *path, char *to, size_t room)
{
    const ssize_t length = readlinkat(shim_fuse_backing, shim_fuse_relative(path), to, room - 1);
    if (length < 0)
        return -errno;
    to[length] = '\0';
    return 0;
}

int fs_mkdir(const char *path, mode_t mode)
{
    SHIM_FUSE_META(mkdirat(shim_fuse_backing, shim_fuse_relative(path), mode) < 0 ? -1 : shim_fuse_give_away(path));
}

int fs_unlink(const char *path)
{
    SHIM_FUSE_META(unlinkat(shim_fuse_backing, shim_fuse_relative(path), 0));
}

int fs_rmdir(const char *path)
{
    SHIM_FUSE_META(unlinkat(shim_fuse_backing, shim_fuse_relative(path), AT_REMOVEDIR));
}

int fs_symlink(const char *target, const char *path)
{
    SHIM_FUSE_META(symlinkat(target, shim_fuse_backing, shim_fuse_relative(path)) < 0 ? -1 : shim_fuse_give_away(path));
}

int fs_rename(const char *from, const char *to, unsigned flags)
{
    SHIM_FUSE_META(
        renameat2(shim_fuse_backing, shim_fuse_relative(from), shim_fuse_backing, shim_fuse_relative(to), flags));
}

int fs_link(const char *from, const char *to)
{
    SHIM_FUSE_META(linkat(shim_fuse_backing, shim_fuse_relative(from), shim_fuse_backing, shim_fuse_relative(to), 0));
}

int fs_chmod(const char *path, mode_t mode, struct fuse_file_info *info)
{
    SHIM_FUSE_META(info ? fchmod(shim_fuse_file(info)->fd, mode)
                        : fchmodat(shim_fuse_backing, shim_fuse_relative(path), mode, 0));
}

int fs_chown(const char *path, uid_t user, gid_t group, struct fuse_file_info *info)
{
    SHIM_FUSE_META(info ? fchown(shim_fuse_file(info)->fd, user, group)
                        : fchownat(shim_fuse_backing, shim_fuse_relative(path), user, group, AT_SYMLINK_NOFOLLOW));
}

static int truncate_at(const char *path, off_t length)
{
    const int fd = openat(shim_fuse_backing, shim_fuse_relative(path), O_WRONLY | O_CLOEXEC);
    const int result = fd < 0 ? -1 : ftruncate(fd, length), error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    return result;
}

int fs_truncate(const char *path, off_t length, struct fuse_file_info *info)
{
    SHIM_FUSE_META(info ? ftruncate(shim_fuse_file(info)->fd, length) : truncate_at(path, length));
}

int fs_utimens(const char *path, const struct timespec times[2], struct fuse_file_info *info)
{
    SHIM_FUSE_META(info ? futimens(shim_fuse_file(info)->fd, times)
                        : utimensat(shim_fuse_backing, shim_fuse_relative(path), times, AT_SYMLINK_NOFOLLOW));
}

int fs_opendir(const char *path, struct fuse_file_info *info)
{
    const struct shim_ticket ticket = shim_fuse_begin((struct shim_call){.operation = PFS_META});
    const int fd = openat(shim_fuse_backing, shim_fuse_relative(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    const int error = errno;
    info->fh = (uintptr_t)folder;
    shim_wait(shim_fuse_state, ticket);
    return folder ? 0 : -error;
}

int fs_readdir(const char *path, void *to, fuse_fill_dir_t fill, off_t offset, struct fuse_file_info *info,
               enum fuse_readdir_flags flags)
{
    (void)path, (void)offset, (void)flags;
    DIR *folder = (DIR *)(uintptr_t)info->fh;
    rewinddir(folder);
    for (struct dirent *entry; (entry = readdir(folder));)
        fill(to, entry->d_name, NULL, 0, 0);
    return 0;
}

int fs_releasedir(const char *path, struct fuse_file_info *info)
{
    (void)path;
    return closedir((DIR *)(uintptr_t)info->fh);
}

int fs_statfs(const char *path, struct statvfs *status)
{
    (void)path;
    return fstatvfs(shim_fuse_backing, status) < 0 ? -errno : 0;
}
