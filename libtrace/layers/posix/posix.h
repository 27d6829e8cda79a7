/* posix.h: what a line of the POSIX table cannot say. All of these keep errno. */
#ifndef ENSIO_LAYERS_POSIX_POSIX_H
#define ENSIO_LAYERS_POSIX_POSIX_H

#include <core/recorder.h>

#include <sys/uio.h>

/* Bytes asked for by a vector of parts. The vector is read after the call, and only where the kernel has read it too:
 * of a failed call 0. */
uint64_t ensio_vector_bytes(const struct iovec *parts, int count, int64_t moved);

/* After an open: ties the descriptor to its file, and stores the event. */
void ensio_opened(struct ensio_thread *thread, uint16_t call, int folder, const char *path, int flags, int result,
                  uint64_t start, uint64_t duration);

/* After a call on a path. `most`: so many bytes of it are as they were before the call; of one that goes on, the name
 * is lost. `error`: the call's errno, 0: it did not fail. An empty path, or none, means the folder's descriptor itself.
 */
void ensio_on_path(struct ensio_thread *thread, uint16_t call, int folder, const char *path, uint32_t most, int error,
                   uint64_t start, uint64_t duration);

/* The depth of a call on an open file of MPI's own: where non-blocking I/O is under way, the call is made for it,
 * though MPI may get on with it in a call, or a thread, that is not recorded. */
static inline uint32_t ensio_depth_of_mpi(uint32_t depth)
{
    return depth & ENSIO_IN_MPI || !__atomic_load_n(&ensio_io_pending, __ATOMIC_RELAXED)
               ? depth
               : (depth ? depth : 1) | ENSIO_IN_MPI;
}

/* Stores a call on such a file. */
void ensio_store_of_mpi(struct ensio_thread *thread, uint16_t call, uint32_t file, int64_t offset, uint64_t requested,
                        int64_t moved, uint64_t start, uint64_t duration);

/* Where a call that was given the address of an offset began; ENSIO_OWN_POSITION where it was given none. `other`: a
 * descriptor whose position the call has moved as well, or -1. */
#define ENSIO_OWN_POSITION INT64_MIN
int64_t ensio_offset_before(const int64_t *at, int64_t moved, int other);

/* Before a close, not after: another thread may get the same descriptor while this one is still in the call. Gives the
 * file; returns whether the call is recorded. */
int ensio_closing(struct ensio_thread *thread, int fd, uint32_t *file);

/* After a dup; `number` is the open file that the old descriptor stood for. */
void ensio_duplicated(struct ensio_thread *thread, uint16_t call, int old, uint32_t number, int result, uint64_t start,
                      uint64_t duration);

/* Descriptors from `first` to `last` are about to end. */
void ensio_forget(int first, int last);

#endif
