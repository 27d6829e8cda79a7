#define _GNU_SOURCE
#include "calls.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Adds the result of one data call up. Returns whether there is more to do. */
static int goes_on(struct call_target *target, ssize_t moved)
{
    target->made++;
    if (moved > 0)
        target->moved += moved;
    if (moved < 0)
        return errno == EINTR;
    return moved > 0 && target->moved < target->bytes;
}

/* Repeats a data call until all bytes are moved, the file ends, or it fails. `data` and `left` are what is still to do. */
#define UNTIL_DONE(target, call)                                                                                       \
    do {                                                                                                               \
        ssize_t moved_;                                                                                                \
        unsigned char *data;                                                                                           \
        size_t left;                                                                                                   \
        do {                                                                                                           \
            data = (target)->data + (target)->moved;                                                                   \
            left = (size_t)((target)->bytes - (target)->moved);                                                        \
            moved_ = (call);                                                                                           \
        } while (goes_on((target), moved_));                                                                           \
        return moved_ < 0 ? -1 : 0;                                                                                    \
    } while (0)

static int make_read(struct call_target *target)
{
    UNTIL_DONE(target, read(*target->descriptor, data, left));
}

static int make_write(struct call_target *target)
{
    UNTIL_DONE(target, write(*target->descriptor, data, left));
}

static int make_pread(struct call_target *target)
{
    UNTIL_DONE(target, pread(*target->descriptor, data, left, target->offset + target->moved));
}

static int make_pwrite(struct call_target *target)
{
    UNTIL_DONE(target, pwrite(*target->descriptor, data, left, target->offset + target->moved));
}

static int make_open(struct call_target *target)
{
    target->made++;
    *target->descriptor = open(target->path, O_RDWR | O_CREAT, 0666);
    return *target->descriptor < 0 ? -1 : 0;
}

static int make_close(struct call_target *target)
{
    int descriptor = *target->descriptor;
    target->made++;
    *target->descriptor = -1;
    return close(descriptor);
}

static int make_lseek(struct call_target *target)
{
    target->made++;
    return lseek(*target->descriptor, target->offset, SEEK_SET) < 0 ? -1 : 0;
}

static int make_fsync(struct call_target *target)
{
    target->made++;
    return fsync(*target->descriptor);
}

static int make_fdatasync(struct call_target *target)
{
    target->made++;
    return fdatasync(*target->descriptor);
}

static const struct call calls[] = {
    {"open", CALL_NO_DATA, make_open},     {"close", CALL_NO_DATA, make_close},
    {"lseek", CALL_NO_DATA, make_lseek},   {"fsync", CALL_NO_DATA, make_fsync},
    {"fdatasync", CALL_NO_DATA, make_fdatasync}, {"read", CALL_READS, make_read},
    {"pread", CALL_READS, make_pread},     {"write", CALL_WRITES, make_write},
    {"pwrite", CALL_WRITES, make_pwrite},
};

const struct call *call_named(const char *name)
{
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (strcmp(calls[i].name, name) == 0)
            return &calls[i];
    return NULL;
}
