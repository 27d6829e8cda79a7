#define _GNU_SOURCE
#include "calls.h"
#include "file_data.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* Adds the result of a data call. Returns whether more is to be done. */
static int goes_on(struct call_target *target, ssize_t moved)
{
    target->made++;
    if (moved > 0)
        target->moved += moved;
    if (moved < 0)
        return errno == EINTR;
    return moved > 0 && target->moved < target->operation->bytes && !target->is_single;
}

/* Defines a data call, which is repeated until all bytes are moved, the file ends, or it fails. In `call`, `data` and
 * `left` are the remaining data, and `at` is their offset. */
#define UNTIL_DONE(name, call) \
    static int name(struct call_target *target, long count) \
    { \
        int descriptor = target->file->descriptor; \
        ssize_t moved; \
        (void)count; \
        do { \
            unsigned char *data = target->data + target->moved; \
            size_t left = (size_t)(target->operation->bytes - target->moved); \
            off_t at = target->operation->offset + target->moved; \
            (void)at; \
            moved = (call); \
        } while (goes_on(target, moved)); \
        return moved < 0 ? -1 : 0; \
    }

UNTIL_DONE(make_read, read(descriptor, data, left))
UNTIL_DONE(make_write, write(descriptor, data, left))
UNTIL_DONE(make_pread, pread(descriptor, data, left, at))
UNTIL_DONE(make_pwrite, pwrite(descriptor, data, left, at))

UNTIL_DONE(make_readv, readv(descriptor, &(struct iovec){data, left}, 1))
UNTIL_DONE(make_writev, writev(descriptor, &(struct iovec){data, left}, 1))
UNTIL_DONE(make_preadv, preadv(descriptor, &(struct iovec){data, left}, 1, at))
UNTIL_DONE(make_pwritev, pwritev(descriptor, &(struct iovec){data, left}, 1, at))

#define DO(name, call) \
    static int name(struct call_target *target, long count) \
    { \
        const struct plan_operation *operation = target->operation; \
        struct open_file *file = target->file; \
        (void)operation; \
        (void)file; \
        target->made += count; \
        return (call); \
    }

static int opened(struct open_file *file, int descriptor)
{
    file->position = 0;
    if (descriptor >= 0)
        file->descriptor = descriptor;
    return descriptor < 0 ? -1 : 0;
}

static int closed(struct open_file *file)
{
    const int descriptor = file->descriptor;
    file->descriptor = -1;
    return close(descriptor);
}

/* Plans of patterns have no flags. */
static int flags_of(const struct plan_operation *operation)
{
    return operation->bytes ? (int)operation->bytes : O_RDWR | O_CREAT;
}

/* Gives a lock back and takes none: the record does not say which locks the program took. */
static int give_lock_back(int descriptor)
{
    struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
    return fcntl(descriptor, F_SETLK, &lock);
}

static int read_folder(struct open_file *file)
{
    return file->folder && (readdir(file->folder), 0) ? -1 : 0;
}

static int close_folder(struct open_file *file)
{
    DIR *folder = file->folder;
    file->folder = NULL;
    return folder ? closedir(folder) : 0;
}

/* The record has no second path. */
static int moved_away(const char *path)
{
    char to[PATH_MAX];
    if (snprintf(to, sizeof to, "%s~", path) >= (int)sizeof to)
        return -1;
    return rename(path, to);
}

static struct stat ignored;
static char ignored_name[PATH_MAX];

DO(make_open, opened(file, open(file->path, flags_of(operation), 0666)))
DO(make_openat, opened(file, openat(AT_FDCWD, file->path, flags_of(operation), 0666)))
DO(make_creat, opened(file, creat(file->path, 0666)))
DO(make_close, closed(file))
DO(make_lseek, lseek(file->descriptor, operation->offset, SEEK_SET) < 0 ? -1 : 0)
DO(make_fsync, fsync(file->descriptor))
DO(make_fdatasync, fdatasync(file->descriptor))
DO(make_ftruncate, ftruncate(file->descriptor, operation->bytes))
DO(make_fallocate, fallocate(file->descriptor, 0, 0, operation->bytes))
DO(make_fstat, fstat(file->descriptor, &ignored))
DO(make_lock, give_lock_back(file->descriptor))
DO(make_flock, flock(file->descriptor, LOCK_UN))
DO(make_stat, stat(file->path, &ignored))
DO(make_lstat, lstat(file->path, &ignored))
DO(make_fstatat, fstatat(AT_FDCWD, file->path, &ignored, 0))
DO(make_access, access(file->path, F_OK))
DO(make_unlink, unlink(file->path))
DO(make_unlinkat, unlinkat(AT_FDCWD, file->path, 0))
DO(make_remove, remove(file->path))
DO(make_mkdir, mkdir(file->path, 0777))
DO(make_readlink, readlink(file->path, ignored_name, sizeof ignored_name) < 0 ? -1 : 0)
DO(make_rename, moved_away(file->path))
DO(make_chmod, chmod(file->path, 0666))
DO(make_truncate, truncate(file->path, operation->bytes))
DO(make_sync_file_range, sync_file_range(file->descriptor, 0, 0, SYNC_FILE_RANGE_WRITE))
DO(make_rmdir, rmdir(file->path))
DO(make_opendir, (file->folder = opendir(file->path)) ? 0 : -1)
DO(make_readdir, read_folder(file))
DO(make_closedir, close_folder(file))

static int is_open(const struct open_file *file)
{
    return file->descriptor >= 0;
}

static const struct call calls[] = {
    {.name = "open", .make = make_open, .on = NAMED_FILE},
    {.name = "openat", .make = make_openat, .on = NAMED_FILE},
    {.name = "creat", .make = make_creat, .on = NAMED_FILE},
    {.name = "close", .make = make_close, .on = OPEN_FILE},
    {.name = "lseek", .make = make_lseek, .on = OPEN_FILE, .at_position = 1},
    {.name = "read", .make = make_read, .on = OPEN_FILE, .data = &data_read, .at_position = 1},
    {.name = "write", .make = make_write, .on = OPEN_FILE, .data = &data_written, .at_position = 1},
    {.name = "pread", .make = make_pread, .on = OPEN_FILE, .data = &data_read},
    {.name = "pwrite", .make = make_pwrite, .on = OPEN_FILE, .data = &data_written},
    {.name = "readv", .make = make_readv, .on = OPEN_FILE, .data = &data_read, .at_position = 1},
    {.name = "writev", .make = make_writev, .on = OPEN_FILE, .data = &data_written, .at_position = 1},
    {.name = "preadv", .make = make_preadv, .on = OPEN_FILE, .data = &data_read},
    {.name = "pwritev", .make = make_pwritev, .on = OPEN_FILE, .data = &data_written},
    {.name = "fsync", .make = make_fsync, .on = OPEN_FILE},
    {.name = "fdatasync", .make = make_fdatasync, .on = OPEN_FILE},
    {.name = "ftruncate", .make = make_ftruncate, .on = OPEN_FILE},
    {.name = "fallocate", .make = make_fallocate, .on = OPEN_FILE},
    {.name = "fstat", .make = make_fstat, .on = OPEN_FILE},
    {.name = "fcntl_lock", .make = make_lock, .on = OPEN_FILE},
    {.name = "flock", .make = make_flock, .on = OPEN_FILE},
    {.name = "stat", .make = make_stat, .on = NAMED_FILE},
    {.name = "lstat", .make = make_lstat, .on = NAMED_FILE},
    {.name = "fstatat", .make = make_fstatat, .on = NAMED_FILE},
    {.name = "access", .make = make_access, .on = NAMED_FILE},
    {.name = "unlink", .make = make_unlink, .on = NAMED_FILE},
    {.name = "unlinkat", .make = make_unlinkat, .on = NAMED_FILE},
    {.name = "remove", .make = make_remove, .on = NAMED_FILE},
    {.name = "readlink", .make = make_readlink, .on = NAMED_FILE},
    {.name = "rename", .make = make_rename, .on = NAMED_FILE},
    {.name = "chmod", .make = make_chmod, .on = NAMED_FILE},
    {.name = "truncate", .make = make_truncate, .on = NAMED_FILE},
    {.name = "sync_file_range", .make = make_sync_file_range, .on = OPEN_FILE},
    {.name = "mkdir", .make = make_mkdir, .on = NAMED_FILE},
    {.name = "rmdir", .make = make_rmdir, .on = NAMED_FILE},
    {.name = "opendir", .make = make_opendir, .on = NAMED_FILE},
    {.name = "readdir", .make = make_readdir, .on = NAMED_FILE},
    {.name = "closedir", .make = make_closedir, .on = NAMED_FILE},
    {.name = NULL},
};

const struct layer posix_layer = {.name = "posix", .calls = calls, .is_open = is_open};
