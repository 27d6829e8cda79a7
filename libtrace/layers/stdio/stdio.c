#include "stdio.h"

#include <files/descriptors.h>
#include <layers/posix/posix.h>
#include <core/recorder.h>

#include <fcntl.h>
#include <string.h>

int ensio_stream_flags(const char *mode)
{
    const int access = !mode || strchr(mode, '+') ? O_RDWR : *mode == 'r' ? O_RDONLY : O_WRONLY;
    return access | (mode && *mode == 'a' ? O_APPEND : 0);
}

/* libc's own reads and writes move the position of the descriptor, so the kernel is asked for it from now on. */
void ensio_stream_opened(struct ensio_thread *thread, uint16_t call, const char *path, const char *mode, FILE *stream,
                         uint64_t start, uint64_t duration)
{
    const int error = errno, fd = stream ? ensio_stream_descriptor(stream) : -1;
    if (path) {
        ensio_opened(thread, call, AT_FDCWD, path, ensio_stream_flags(mode), fd, start, duration);
    } else if (ensio_is_owner()) {
        ensio_forget(fd, fd);
        const uint32_t number = fd < 0 ? ENSIO_LEFT_OUT : ensio_descriptor(fd);
        if (stream && number <= ENSIO_LEFT_OUT)
            thread->excluded_calls++;
        else
            ensio_store_with(ensio_access_of(ensio_stream_flags(mode)), thread, call,
                             stream ? ensio_open_files[number].file : 0, -1, 0, stream ? 0 : -(int64_t)error, start,
                             duration);
    }
    if (fd >= 0)
        ensio_descriptor_moved(fd, -1);
    errno = error;
}

int64_t ensio_stream_refilled(uint32_t number, FILE *stream, int64_t waiting)
{
    struct ensio_open_file *open_file = &ensio_open_files[number];
    const int64_t unread = stream->_IO_read_end - stream->_IO_read_ptr;
    if (number <= ENSIO_LEFT_OUT || __atomic_load_n(&open_file->user, __ATOMIC_RELAXED) == ENSIO_SEVERAL)
        return 1 + unread + waiting - (stream->_IO_write_ptr - stream->_IO_write_base);
    const int32_t ahead = __atomic_load_n(&open_file->ahead, __ATOMIC_RELAXED);
    const int64_t others = unread > ahead ? unread - ahead : 0;
    __atomic_store_n(&open_file->ahead, ahead + (int32_t)others, __ATOMIC_RELAXED);
    return 1 + others;
}
