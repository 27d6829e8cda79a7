#include "fuse_operations.h"

#include <core/bounded_string.h>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t key_of(const char *path)
{
    return ensio_hash(path) | 1;
}

/* Appending is the kernel's business, which knows the size; direct I/O would ask for aligned memory here. */
static int open_at(const char *path, int flags, mode_t mode, uint16_t operation, struct fuse_file_info *info)
{
    const struct shim_ticket ticket = mounted_begin((struct shim_call){.operation = operation, .key = key_of(path)});
    const int fd = openat(mounted_backing, mounted_below(path), (flags & ~(O_APPEND | O_DIRECT)) | O_CLOEXEC, mode);
    struct mounted_file *file = fd < 0 ? NULL : malloc(sizeof *file);
    const int error = fd < 0 ? errno : ENOMEM;
    if (fd >= 0 && !file)
        close(fd);
    if (file) {
        *file = (struct mounted_file){.key = key_of(path), .fd = fd, .through = (flags & (O_SYNC | O_DSYNC | O_DIRECT)) != 0};
        info->fh = (uintptr_t)file;
        info->direct_io = 1;
    }
    shim_wait(mounted_state, ticket);
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
        (void)!mounted_give_away(path);
    return result;
}

int fs_read(const char *path, char *to, size_t bytes, off_t offset, struct fuse_file_info *info)
{
    (void)path;
    struct stat status;
    int64_t there = fstat(mounted_file(info)->fd, &status) == 0 ? status.st_size - offset : 0;
    if (there <= 0)
        return 0;
    const struct shim_ticket ticket = mounted_begin((struct shim_call){
        .operation = PFS_READ,
        .key = mounted_file(info)->key,
        .offset = offset,
        .bytes = there < (int64_t)bytes ? there : (int64_t)bytes,
    });
    const ssize_t got = pread(mounted_file(info)->fd, to, bytes, offset);
    const int result = got < 0 ? -errno : (int)got;
    shim_wait(mounted_state, ticket);
    return result;
}

int fs_write(const char *path, const char *from, size_t bytes, off_t offset, struct fuse_file_info *info)
{
    (void)path;
    const struct shim_ticket ticket = mounted_begin((struct shim_call){
        .operation = PFS_WRITE,
        .through = (uint16_t)mounted_file(info)->through,
        .key = mounted_file(info)->key,
        .offset = offset,
        .bytes = (int64_t)bytes,
    });
    const ssize_t put = pwrite(mounted_file(info)->fd, from, bytes, offset);
    const int result = put < 0 ? -errno : (int)put;
    shim_wait(mounted_state, ticket);
    return result;
}

int fs_fsync(const char *path, int data_only, struct fuse_file_info *info)
{
    (void)path;
    const struct shim_ticket ticket = mounted_begin((struct shim_call){.operation = PFS_SYNC, .key = mounted_file(info)->key});
    const int result = (data_only ? fdatasync(mounted_file(info)->fd) : fsync(mounted_file(info)->fd)) < 0 ? -errno : 0;
    shim_wait(mounted_state, ticket);
    return result;
}

/* Of each close; release comes later, when nobody waits for it. */
int fs_flush(const char *path, struct fuse_file_info *info)
{
    (void)path;
    shim_wait(mounted_state, mounted_begin((struct shim_call){.operation = PFS_CLOSE, .key = mounted_file(info)->key}));
    return 0;
}

int fs_release(const char *path, struct fuse_file_info *info)
{
    (void)path;
    close(mounted_file(info)->fd);
    free(mounted_file(info));
    return 0;
}

int fs_fallocate(const char *path, int mode, off_t offset, off_t bytes, struct fuse_file_info *info)
{
    (void)path;
    MOUNTED_META(fallocate(mounted_file(info)->fd, mode, offset, bytes));
}
