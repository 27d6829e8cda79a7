#include "posix.h"

#include <core/descriptors.h>
#include <core/files.h>
#include <core/life.h>
#include <core/lock.h>
#include <core/raw.h>
#include <core/settings.h>
#include <core/text.h>

#include <string.h>

uint64_t ensio_vector_bytes(const struct iovec *parts, int count, int64_t moved)
{
    uint64_t bytes = 0;
    if (moved < 0)
        return 0;
    for (int i = 0; i < count; i++)
        bytes += parts[i].iov_len;
    /* What was read may have been read into the vector itself. */
    return bytes < (uint64_t)moved || bytes > INT64_MAX ? (uint64_t)moved : bytes;
}

/* Whether the kernel can read a path that a call failed on: some arguments it refuses before it looks at the path. */
static int cannot_be_read(const char *path, int error)
{
    return error == EFAULT || (error == EINVAL && ENSIO_RAW(SYS_faccessat, AT_FDCWD, path, F_OK) == -EFAULT);
}

void ensio_opened(struct ensio_thread *thread, uint16_t call, int folder, const char *path, int flags, int result,
                  uint64_t start, uint64_t duration)
{
    int error = errno;
    if (result < 0 && ENSIO_UNLIKELY(cannot_be_read(path, error))) {
        errno = error;
        return;
    }
    if (!ensio_own_memory()) {
        ensio_spawned();
        return;
    }
    struct ensio_held held = ensio_lock();
    const char *absolute = ensio_absolute_path(folder, path);
    int recorded = !ensio_listed(absolute, ensio_settings.exclude);
    uint32_t file = 0;
    if (result >= 0) {
        uint32_t number = ensio_descriptor_opened(result, absolute, flags);
        recorded = number > ENSIO_LEFT_OUT;
        file = recorded ? ensio_open_files[number].file : 0;
    } else if (recorded) {
        file = ensio_file_number(absolute);
    }
    ensio_unlock(held);
    if (recorded)
        ensio_store(thread, call, file, -1, 0, result < 0 ? -(int64_t)error : 0, start, duration);
    else
        thread->excluded_calls++;
}

void ensio_on_path(struct ensio_thread *thread, uint16_t call, int folder, const char *path, uint64_t bytes, int error,
                   uint64_t start, uint64_t duration)
{
    if (!path || !ensio_own_memory())
        return;
    if (error && ENSIO_UNLIKELY(cannot_be_read(path, error))) {
        errno = error;
        return;
    }
    uint32_t file = 0;
    int recorded;
    if (*path || folder == AT_FDCWD) {
        struct ensio_held held = ensio_lock();
        const char *absolute = ensio_absolute_path(folder, path);
        recorded = !ensio_listed(absolute, ensio_settings.exclude);
        file = recorded ? ensio_file_number(absolute) : 0;
        ensio_unlock(held);
    } else {
        uint32_t number = ensio_descriptor(folder);
        recorded = number > ENSIO_LEFT_OUT;
        file = recorded ? ensio_open_files[number].file : 0;
    }
    if (recorded)
        ensio_store(thread, call, file, -1, bytes, -(int64_t)error, start, duration);
    else
        thread->excluded_calls++;
}

int64_t ensio_offset_before(const int64_t *at, int64_t moved, int other)
{
    uint32_t number = other < 0 ? ENSIO_LEFT_OUT : ensio_descriptor(other);
    if (number > ENSIO_LEFT_OUT)
        ensio_open_files[number].flags |= ENSIO_ASK;
    if (!at)
        return ENSIO_HERE;
    return moved < 0 ? -1 : *at - moved;
}

int ensio_closing(struct ensio_thread *thread, int fd, uint32_t *file)
{
    if (!ensio_own_memory()) {
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
    if (first < 0 || last < first || !ensio_own_memory())
        return;
    struct ensio_held held = ensio_lock();
    ensio_descriptors_forget((unsigned)first, (unsigned)last);
    ensio_unlock(held);
}
