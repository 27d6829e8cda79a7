#define _GNU_SOURCE
#include "calls.h"
#include "file_data.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
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
#define UNTIL_DONE(name, call, ...) \
    static int make_##name(struct call_target *target, long count) \
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

static int is_open(const struct open_file *file)
{
    return file->descriptor >= 0;
}

#define CALLS(X) \
    X(open, 1, opened(file, open(file->path, flags_of(operation), 0666)), .on = NAMED_FILE) \
    X(openat, 1, opened(file, openat(AT_FDCWD, file->path, flags_of(operation), 0666)), .on = NAMED_FILE) \
    X(creat, 1, opened(file, creat(file->path, 0666)), .on = NAMED_FILE) \
    X(close, 1, closed(file), .on = OPEN_FILE) \
    X(lseek, 1, lseek(file->descriptor, operation->offset, SEEK_SET) < 0 ? -1 : 0, .on = OPEN_FILE, .at_position = 1) \
    X(fsync, 1, fsync(file->descriptor), .on = OPEN_FILE) \
    X(fdatasync, 1, fdatasync(file->descriptor), .on = OPEN_FILE) \
    X(ftruncate, 1, ftruncate(file->descriptor, operation->bytes), .on = OPEN_FILE) \
    X(fallocate, 1, fallocate(file->descriptor, 0, 0, operation->bytes), .on = OPEN_FILE) \
    X(fstat, 1, fstat(file->descriptor, &ignored), .on = OPEN_FILE) \
    X(fcntl_lock, 1, give_lock_back(file->descriptor), .on = OPEN_FILE) \
    X(flock, 1, flock(file->descriptor, LOCK_UN), .on = OPEN_FILE) \
    X(stat, 1, stat(file->path, &ignored), .on = NAMED_FILE) \
    X(lstat, 1, lstat(file->path, &ignored), .on = NAMED_FILE) \
    X(fstatat, 1, fstatat(AT_FDCWD, file->path, &ignored, 0), .on = NAMED_FILE) \
    X(access, 1, access(file->path, F_OK), .on = NAMED_FILE) \
    X(unlink, 1, unlink(file->path), .on = NAMED_FILE) \
    X(unlinkat, 1, unlinkat(AT_FDCWD, file->path, 0), .on = NAMED_FILE) \
    X(remove, 1, remove(file->path), .on = NAMED_FILE) \
    X(readlink, 1, readlink(file->path, ignored_name, sizeof ignored_name) < 0 ? -1 : 0, .on = NAMED_FILE) \
    X(realpath, 1, realpath(file->path, ignored_name) ? 0 : -1, .on = NAMED_FILE) \
    X(rename, 1, moved_away(file->path), .on = NAMED_FILE) \
    X(chmod, 1, chmod(file->path, 0666), .on = NAMED_FILE) \
    X(truncate, 1, truncate(file->path, operation->bytes), .on = NAMED_FILE) \
    X(sync_file_range, 1, sync_file_range(file->descriptor, 0, 0, SYNC_FILE_RANGE_WRITE), .on = OPEN_FILE) \
    X(mkdir, 1, mkdir(file->path, 0777), .on = NAMED_FILE) \
    X(rmdir, 1, rmdir(file->path), .on = NAMED_FILE) \
    X(opendir, 1, (file->folder = opendir(file->path)) ? 0 : -1, .on = NAMED_FILE) \
    X(readdir, 1, read_folder(file), .on = NAMED_FILE) \
    X(closedir, 1, close_folder(file), .on = NAMED_FILE)

CALLS(MAKE)

#define TRANSFERS(X) \
    X(read, read(descriptor, data, left), .on = OPEN_FILE, .data = &data_read, .at_position = 1) \
    X(write, write(descriptor, data, left), .on = OPEN_FILE, .data = &data_written, .at_position = 1) \
    X(pread, pread(descriptor, data, left, at), .on = OPEN_FILE, .data = &data_read) \
    X(pwrite, pwrite(descriptor, data, left, at), .on = OPEN_FILE, .data = &data_written) \
    X(readv, readv(descriptor, &(struct iovec){data, left}, 1), .on = OPEN_FILE, .data = &data_read, .at_position = 1) \
    X(writev, writev(descriptor, &(struct iovec){data, left}, 1), .on = OPEN_FILE, .data = &data_written, \
      .at_position = 1) \
    X(preadv, preadv(descriptor, &(struct iovec){data, left}, 1, at), .on = OPEN_FILE, .data = &data_read) \
    X(pwritev, pwritev(descriptor, &(struct iovec){data, left}, 1, at), .on = OPEN_FILE, .data = &data_written)

TRANSFERS(UNTIL_DONE)

#define TRANSFER_ROW(name, call, ...) ROW(name, 0, 0, __VA_ARGS__)

static const struct call calls[] = {CALLS(ROW) TRANSFERS(TRANSFER_ROW){.name = NULL}};

const struct layer posix_layer = {.name = "posix", .calls = calls, .is_open = is_open};
