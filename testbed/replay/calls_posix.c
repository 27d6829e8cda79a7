#define _GNU_SOURCE
#include "calls.h"
#include "file_data.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Adds the result of a data call. Returns whether more is to be done. */
static int goes_on(struct call_target *target, ssize_t moved)
{
    target->made++;
    if (moved > 0)
        target->moved += moved;
    if (moved < 0)
        return errno == EINTR;
    return moved > 0 && target->moved < target->operation->bytes;
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

static int make_open(struct call_target *target, long count)
{
    target->made += count;
    target->file->descriptor = open(target->file->path, O_RDWR | O_CREAT, 0666);
    return target->file->descriptor < 0 ? -1 : 0;
}

static int make_close(struct call_target *target, long count)
{
    int descriptor = target->file->descriptor;
    target->made += count;
    target->file->descriptor = -1;
    return close(descriptor);
}

static int make_lseek(struct call_target *target, long count)
{
    target->made += count;
    return lseek(target->file->descriptor, target->operation->offset, SEEK_SET) < 0 ? -1 : 0;
}

static int make_fsync(struct call_target *target, long count)
{
    target->made += count;
    return fsync(target->file->descriptor);
}

static int make_fdatasync(struct call_target *target, long count)
{
    target->made += count;
    return fdatasync(target->file->descriptor);
}

static int make_stat(struct call_target *target, long count)
{
    struct stat status;
    target->made += count;
    return stat(target->file->path, &status);
}

static int make_unlink(struct call_target *target, long count)
{
    target->made += count;
    return unlink(target->file->path);
}

static int make_ftruncate(struct call_target *target, long count)
{
    target->made += count;
    return ftruncate(target->file->descriptor, target->operation->bytes);
}

static int is_open(const struct open_file *file)
{
    return file->descriptor >= 0;
}

static const struct call calls[] = {
    {.name = "open", .make = make_open, .on = NAMED_FILE},
    {.name = "close", .make = make_close, .on = OPEN_FILE},
    {.name = "lseek", .make = make_lseek, .on = OPEN_FILE},
    {.name = "read", .make = make_read, .data = &data_read, .on = OPEN_FILE},
    {.name = "write", .make = make_write, .data = &data_written, .on = OPEN_FILE},
    {.name = "pread", .make = make_pread, .data = &data_read, .on = OPEN_FILE},
    {.name = "pwrite", .make = make_pwrite, .data = &data_written, .on = OPEN_FILE},
    {.name = "fsync", .make = make_fsync, .on = OPEN_FILE},
    {.name = "fdatasync", .make = make_fdatasync, .on = OPEN_FILE},
    {.name = "stat", .make = make_stat, .on = NAMED_FILE},
    {.name = "unlink", .make = make_unlink, .on = NAMED_FILE},
    {.name = "ftruncate", .make = make_ftruncate, .on = OPEN_FILE},
    {.name = NULL},
};

const struct layer posix_layer = {.name = "posix", .calls = calls, .is_open = is_open};
