#include "posix.h"

#include <calls/calls.h>
#include <files/descriptors.h>
#include <files/file_attributes.h>
#include <files/folders.h>
#include <files/names.h>
#include <files/paths.h>
#include <layers/program_memory.h>
#include <process/lifecycle.h>
#include <time/clock.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

uint64_t ensio_vector_bytes(const struct iovec *parts, int count, int64_t moved)
{
    uint64_t bytes = 0;
    if (moved < 0)
        return 0;
    for (int i = 0; i < count; i++)
        bytes += parts[i].iov_len;
    /* The call may have read data into the vector itself. */
    return bytes < (uint64_t)moved || bytes > INT64_MAX ? (uint64_t)moved : bytes;
}

/* What the descriptor of a path that was opened before must be; -1: ask the kernel. */
static int flags_without_asking(const struct ensio_name *name, int flags)
{
    if (!ensio_name_was_opened(name) || (ENSIO_UNLIKELY(flags & ENSIO_BYPASSING) && !ensio_name_was_synced(name)))
        return -1;
    if (flags & O_DIRECTORY)
        return ENSIO_NO_POSITION;
    if (!ensio_name_is_regular(name))
        return -1;
    return (flags & O_APPEND ? ENSIO_ASK | ENSIO_APPENDS : 0) | ensio_waits_for_device(flags);
}

/* Binds a new descriptor, which asks the kernel. Returns the open file, or ENSIO_LEFT_OUT. */
static uint32_t bind_slowly(int folder, const char *path, uint32_t length, int flags, int fd, int of_mpi)
{
    const int error = errno;
    const struct ensio_named named = ensio_name_look_up(folder, path, length);
    const uint32_t number = ensio_descriptor_opened(fd, &named, flags, of_mpi);
    errno = error;
    return number;
}

static uint32_t bind(int folder, const char *path, uint32_t length, int flags, int fd, int of_mpi)
{
    if (ENSIO_UNLIKELY((flags & O_TMPFILE) == O_TMPFILE)) { /* the path is the folder of a file that the kernel names */
        const int error = errno;
        ensio_forget(fd, fd);
        const uint32_t number = ensio_descriptor_find(fd);
        errno = error;
        return number;
    }
    const struct ensio_name *name = ensio_name_find(folder, path, length);
    if (ENSIO_LIKELY(name != NULL)) {
        if (!name->file)
            return ensio_descriptor_opened(fd, &(struct ensio_named){.left_out = 1}, flags, of_mpi);
        const int known = flags_without_asking(name, flags);
        if (ENSIO_LIKELY(known >= 0))
            return ensio_descriptor_bind(fd, name->file, (uint16_t)known, of_mpi);
    }
    return bind_slowly(folder, path, length, flags, fd, of_mpi);
}

/* The number of a path, or 0. Returns whether calls on it are recorded. */
static int file_of(int folder, const char *path, uint32_t length, uint32_t *file)
{
    const struct ensio_name *name = ensio_name_find(folder, path, length);
    if (ENSIO_LIKELY(name != NULL)) {
        *file = name->file;
        return name->file != 0;
    }
    const int error = errno;
    const struct ensio_named named = ensio_name_look_up(folder, path, length);
    errno = error;
    *file = named.file;
    return !named.left_out;
}

/* Whether the kernel has read a call's only path before the call failed, so that it is readable. */
static int has_read_path(int error)
{
    return error == ENOENT || error == ENOTDIR;
}

void ensio_opened(struct ensio_thread *thread, uint16_t call, int folder, const char *path, int flags, int result,
                  uint64_t start, uint64_t duration)
{
    const int error = errno;
    const int64_t length = ensio_path_length(path, ENSIO_LONGEST_PATH, result >= 0 || has_read_path(error));
    if (ENSIO_UNLIKELY(length < 0))
        return;
    if (!ensio_is_owner()) {
        ensio_spawned();
        return;
    }
    int recorded;
    uint32_t file = 0;
    ensio_folders_age(start);
    if (result >= 0) {
        const int of_mpi = (thread->depth & ENSIO_IN_MPI) != 0;
        const uint32_t number = bind(folder, path, (uint32_t)length, flags, result, of_mpi);
        recorded = number > ENSIO_LEFT_OUT;
        file = recorded ? ensio_open_files[number].file : 0;
    } else {
        recorded = file_of(folder, path, (uint32_t)length, &file);
    }
    if (recorded)
        ensio_store_with(ensio_access_of(flags), thread, call, file, -1, 0, result < 0 ? -(int64_t)error : 0, start,
                         duration);
    else
        thread->excluded_calls++;
}

void ensio_on_path(struct ensio_thread *thread, uint16_t call, int folder, const char *path, uint32_t most, int error,
                   int is_only_path, uint64_t start, uint64_t duration)
{
    if ((!path && error) || !ensio_is_owner())
        return;
    if (error && error != EFAULT) /* the call wrote no result */
        most = ENSIO_LONGEST_PATH;
    const int was_read = !error || (is_only_path && has_read_path(error));
    const int64_t length = path ? ensio_path_length(path, most, was_read) : 0;
    if (ENSIO_UNLIKELY(length < 0))
        return;
    uint32_t file = 0;
    int recorded = 1;
    ensio_folders_age(start);
    if (ENSIO_UNLIKELY(length == most && most < ENSIO_LONGEST_PATH)) {
        /* The result has overwritten the rest of the path. */
    } else if (length || folder == AT_FDCWD) {
        recorded = file_of(folder, path ? path : "", (uint32_t)length, &file);
    } else {
        uint32_t number = ensio_descriptor(folder);
        recorded = number > ENSIO_LEFT_OUT;
        file = recorded ? ensio_open_files[number].file : 0;
    }
    if (recorded)
        ensio_store(thread, call, file, -1, 0, -(int64_t)error, start, duration);
    else
        thread->excluded_calls++;
}

int ensio_linked(int result, int from_folder, const char *from, int folder, const char *path)
{
    static const char descriptors[] = "/proc/self/fd/";
    if (result != 0 || !ensio_is_owner())
        return folder;
    const int is_path = strncmp(from, descriptors, sizeof descriptors - 1) == 0;
    const int fd = is_path ? atoi(from + sizeof descriptors - 1) : *from ? -1 : from_folder;
    const uint32_t number = fd < 0 ? ENSIO_LEFT_OUT : ensio_descriptor(fd);
    const int error = errno;
    if (number > ENSIO_LEFT_OUT)
        ensio_file_linked(ensio_open_files[number].file, ensio_name_look_up(folder, path, (uint32_t)strlen(path)).file);
    errno = error;
    return folder;
}

/* A program tries again after EAGAIN (a pipe or socket was full) and EINTR. */
void ensio_write_left_out(struct ensio_thread *thread, uint16_t call, int fd, uint64_t requested, int64_t moved,
                          uint64_t start)
{
    const int is_failure = moved < 0 && moved != -EAGAIN && moved != -EINTR && !ensio_unwanted_calls[call];
    uint32_t file = 0;
    if (ENSIO_LIKELY(!is_failure) || !ensio_is_owner()) {
        thread->excluded_calls++;
        ensio_leave_out_write(ensio_descriptor(fd) == ENSIO_LEFT_OUT_FILE, moved);
        return;
    }
    const uint64_t duration = ensio_ticks() - start;
    if (ensio_descriptor_of_failure(fd, (int)-moved, &file))
        ensio_store(thread, call, file, -1, requested, moved, start, duration);
    else
        thread->excluded_calls++;
}

void ensio_store_of_mpi(uint8_t flags, struct ensio_thread *thread, uint16_t call, uint32_t file, int64_t offset,
                        uint64_t requested, int64_t moved, uint64_t start, uint64_t duration)
{
    const uint32_t depth = thread->depth;
    thread->depth = ensio_depth_of_mpi(depth);
    ensio_store_with(flags, thread, call, file, offset, requested, moved, start, duration);
    thread->depth = depth;
}

struct ensio_end ensio_end_of(uint16_t call, int fd, const void *at)
{
    const uint32_t number = ensio_descriptor(fd);
    return (struct ensio_end){
        .call = call, .fd = fd, .number = number, .file = ensio_open_files[number].file, .at = at};
}

static void store_end(uint8_t flags, struct ensio_thread *thread, const struct ensio_end *end, int64_t moved,
                      uint64_t start, uint64_t duration)
{
    struct ensio_open_file *open_file = &ensio_open_files[end->number];
    const int64_t offset = !end->at ? ensio_position(end->fd, open_file, moved) : moved < 0 ? -1 : *end->at - moved;
    ensio_store_with(flags | ensio_flags_of_transfer(open_file, ensio_call_ops[end->call] == ENSIO_OP_WRITE), thread,
                     end->call, end->file, offset, moved > 0 ? (uint64_t)moved : 0, moved, start, duration);
}

void ensio_copied(struct ensio_thread *thread, const struct ensio_end *first, const struct ensio_end *second,
                  int64_t moved, uint64_t start, uint64_t duration)
{
    const int writes = ensio_call_ops[first->call] == ENSIO_OP_WRITE, has_first = first->number > ENSIO_LEFT_OUT;
    const struct ensio_end *const ends[] = {writes ? first : second, writes ? second : first};
    const uint32_t depth = thread->depth;
    const int has_both = has_first && second->number > ENSIO_LEFT_OUT && moved > 0;
    for (int reads = 0; reads <= 1; reads++) {
        thread->depth = depth + (has_both && !reads);
        if (ends[reads]->number <= ENSIO_LEFT_OUT)
            reads ? ensio_leave_out_read(moved) : ensio_leave_out_write(ends[0]->number == ENSIO_LEFT_OUT_FILE, moved);
        else if (has_both || ends[reads] == first || !has_first)
            store_end(has_both && !reads ? ENSIO_SAME_CALL : 0, thread, ends[reads], moved, start, duration);
    }
    thread->depth = depth;
    if (!has_first && second->number <= ENSIO_LEFT_OUT)
        ensio_write_left_out(thread, ends[0]->call, ends[0]->fd, 0, moved < 0 ? moved : 0, start);
}

int ensio_closing(struct ensio_thread *thread, int fd, uint32_t *file)
{
    if (!ensio_is_owner()) {
        ensio_spawned();
        return 0;
    }
    uint32_t number = ensio_descriptor(fd);
    if (number > ENSIO_LEFT_OUT)
        *file = ensio_open_files[number].file;
    else
        thread->excluded_calls++;
    if (fd >= 0)
        ensio_descriptors_forget((unsigned)fd, (unsigned)fd);
    return number > ENSIO_LEFT_OUT;
}

void ensio_duplicated(struct ensio_thread *thread, uint16_t call, int old, uint32_t number, int result, uint64_t start,
                      uint64_t duration)
{
    int error = errno;
    if (result >= 0)
        ensio_descriptor_duplicated(old, result);
    if (number > ENSIO_LEFT_OUT)
        ensio_store(thread, call, ensio_open_files[number].file, -1, 0, result < 0 ? -(int64_t)error : 0, start,
                    duration);
    else
        thread->excluded_calls++;
}

void ensio_forget(int first, int last)
{
    if (first >= 0 && last >= first && ensio_is_owner())
        ensio_descriptors_forget((unsigned)first, (unsigned)last);
}
