#include "fuse_operations.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

int fs_getattr(const char *path, struct stat *status, struct fuse_file_info *info)
{
    MOUNTED_META(info ? fstat(mounted_file(info)->fd, status) : fstatat(mounted_backing, mounted_below(path), status, AT_SYMLINK_NOFOLLOW));
}

int fs_readlink(const char *path, char *to, size_t room)
{
    const ssize_t length = readlinkat(mounted_backing, mounted_below(path), to, room - 1);
    if (length < 0)
        return -errno;
    to[length] = '\0';
    return 0;
}

int fs_mkdir(const char *path, mode_t mode)
{
    MOUNTED_META(mkdirat(mounted_backing, mounted_below(path), mode) < 0 ? -1 : mounted_give_away(path));
}

int fs_unlink(const char *path)
{
    MOUNTED_META(unlinkat(mounted_backing, mounted_below(path), 0));
}

int fs_rmdir(const char *path)
{
    MOUNTED_META(unlinkat(mounted_backing, mounted_below(path), AT_REMOVEDIR));
}

int fs_symlink(const char *target, const char *path)
{
    MOUNTED_META(symlinkat(target, mounted_backing, mounted_below(path)) < 0 ? -1 : mounted_give_away(path));
}

int fs_rename(const char *from, const char *to, unsigned flags)
{
    MOUNTED_META(renameat2(mounted_backing, mounted_below(from), mounted_backing, mounted_below(to), flags));
}

int fs_link(const char *from, const char *to)
{
    MOUNTED_META(linkat(mounted_backing, mounted_below(from), mounted_backing, mounted_below(to), 0));
}

int fs_chmod(const char *path, mode_t mode, struct fuse_file_info *info)
{
    MOUNTED_META(info ? fchmod(mounted_file(info)->fd, mode) : fchmodat(mounted_backing, mounted_below(path), mode, 0));
}

int fs_chown(const char *path, uid_t user, gid_t group, struct fuse_file_info *info)
{
    MOUNTED_META(info ? fchown(mounted_file(info)->fd, user, group)
              : fchownat(mounted_backing, mounted_below(path), user, group, AT_SYMLINK_NOFOLLOW));
}

static int truncate_at(const char *path, off_t length)
{
    const int fd = openat(mounted_backing, mounted_below(path), O_WRONLY | O_CLOEXEC);
    const int result = fd < 0 ? -1 : ftruncate(fd, length), error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    return result;
}

int fs_truncate(const char *path, off_t length, struct fuse_file_info *info)
{
    MOUNTED_META(info ? ftruncate(mounted_file(info)->fd, length) : truncate_at(path, length));
}

int fs_utimens(const char *path, const struct timespec times[2], struct fuse_file_info *info)
{
    MOUNTED_META(info ? futimens(mounted_file(info)->fd, times) : utimensat(mounted_backing, mounted_below(path), times, AT_SYMLINK_NOFOLLOW));
}

int fs_opendir(const char *path, struct fuse_file_info *info)
{
    const struct shim_ticket ticket = mounted_begin((struct shim_call){.operation = PFS_META});
    const int fd = openat(mounted_backing, mounted_below(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    const int error = errno;
    info->fh = (uintptr_t)folder;
    shim_wait(mounted_state, ticket);
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
    return fstatvfs(mounted_backing, status) < 0 ? -errno : 0;
}
