#include "posix.h"

#include <core/bounded_string.h>
#include <core/lock.h>
#include <core/settings.h>
#include <files/descriptors.h>
#include <files/paths.h>
#include <layers/program_memory.h>
#include <process/lifecycle.h>

#include <errno.h>
#include <fcntl.h>

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

void ensio_opened(struct ensio_thread *thread, uint16_t call, int folder, const char *path, int flags, int result,
                  uint64_t start, uint64_t duration)
{
    const int error = errno;
    const int64_t length = ensio_path_length(path, ENSIO_LONGEST_PATH, result >= 0);
    if (ENSIO_UNLIKELY(length < 0))
        return;
    if (!ensio_owns_memory()) {
        ensio_spawned();
        return;
    }
    struct ensio_held held = ensio_lock();
    const char *absolute = ensio_absolute_path(folder, path, (uint32_t)length);
    int recorded = !ensio_listed(absolute, ensio_settings.exclude);
    uint32_t file = 0;
    if (result >= 0) {
        uint32_t number = ensio_descriptor_opened(result, absolute, flags);
        recorded = number > ENSIO_LEFT_OUT;
        file = recorded ? ensio_open_files[number].file : 0;
        ensio_open_files[number].of_mpi = recorded && thread->depth & ENSIO_IN_MPI;
    } else if (recorded) {
        file = ensio_file_number(absolute);
    }
    ensio_unlock(held);
    if (recorded)
        ensio_store(thread, call, file, -1, 0, result < 0 ? -(int64_t)error : 0, start, duration);
    else
        thread->excluded_calls++;
}

void ensio_on_path(struct ensio_thread *thread, uint16_t call, int folder, const char *path, uint32_t most, int error,
                   uint64_t start, uint64_t duration)
{
    if ((!path && error) || !ensio_owns_memory())
        return;
    if (error && error != EFAULT) /* the call wrote no result */
        most = ENSIO_LONGEST_PATH;
    const int64_t length = path ? ensio_path_length(path, most, !error) : 0;
    if (ENSIO_UNLIKELY(length < 0))
        return;
    uint32_t file = 0;
    int recorded = 1;
    if (ENSIO_UNLIKELY(length == most && most < ENSIO_LONGEST_PATH)) {
        /* The result has overwritten the rest of the path. */
    } else if (length || folder == AT_FDCWD) {
        struct ensio_held held = ensio_lock();
        const char *absolute = ensio_absolute_path(folder, path ? path : "", (uint32_t)length);
        recorded = !ensio_listed(absolute, ensio_settings.exclude);
        file = recorded ? ensio_file_number(absolute) : 0;
        ensio_unlock(held);
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

void ensio_store_of_mpi(struct ensio_thread *thread, uint16_t call, uint32_t file, int64_t offset, uint64_t requested,
                        int64_t moved, uint64_t start, uint64_t duration)
{
    const uint32_t depth = thread->depth;
    thread->depth = ensio_depth_of_mpi(depth);
    ensio_store(thread, call, file, offset, requested, moved, start, duration);
    thread->depth = depth;
}

int64_t ensio_offset_before(const int64_t *at, int64_t moved, int other)
{
    uint32_t number = other < 0 ? ENSIO_LEFT_OUT : ensio_descriptor(other);
    if (number > ENSIO_LEFT_OUT)
        ensio_open_files[number].flags |= ENSIO_ASK;
    if (!at)
        return ENSIO_OWN_POSITION;
    return moved < 0 ? -1 : *at - moved;
}

int ensio_closing(struct ensio_thread *thread, int fd, uint32_t *file)
{
    if (!ensio_owns_memory()) {
        ensio_spawned();
        return 0;
    }
    uint32_t number = ensio_descriptor(fd);
    if (number > ENSIO_LEFT_OUT)
        *file = ensio_open_files[number].file;
    else
        thread->excluded_calls++;
    ensio_forget(fd, fd);
    return number > ENSIO_LEFT_OUT;
}

void ensio_duplicated(struct ensio_thread *thread, uint16_t call, int old, uint32_t number, int result, uint64_t start,
                      uint64_t duration)
{
    int error = errno;
    if (result >= 0) {
        struct ensio_held held = ensio_lock();
        ensio_descriptor_duplicated(old, result);
        ensio_unlock(held);
    }
    if (number > ENSIO_LEFT_OUT)
        ensio_store(thread, call, ensio_open_files[number].file, -1, 0, result < 0 ? -(int64_t)error : 0, start,
                    duration);
    else
        thread->excluded_calls++;
}

void ensio_forget(int first, int last)
{
    if (first < 0 || last < first || !ensio_owns_memory())
        return;
    struct ensio_held held = ensio_lock();
    ensio_descriptors_forget((unsigned)first, (unsigned)last);
    ensio_unlock(held);
}
