/* posix.h: helpers of the POSIX wrappers. All of them preserve errno. */
#ifndef ENSIO_LAYERS_POSIX_POSIX_H
#define ENSIO_LAYERS_POSIX_POSIX_H

#include <core/recorder.h>
#include <files/descriptors.h>

#include <fcntl.h>
#include <sys/uio.h>

/* Bytes requested by a vector. It is read after the call, and only if the kernel has read it too; 0 for a failed
 * call. */
uint64_t ensio_vector_bytes(const struct iovec *parts, int count, int64_t moved);

/* The access that flags of open(2) ask for, as flags of an event. */
static inline uint8_t ensio_access_of(int flags)
{
    return (uint8_t)((flags & O_ACCMODE) == O_RDWR     ? ENSIO_OPENED_TO_READ | ENSIO_OPENED_TO_WRITE
                     : (flags & O_ACCMODE) == O_WRONLY ? ENSIO_OPENED_TO_WRITE
                                                       : ENSIO_OPENED_TO_READ);
}

/* After an open: binds the descriptor to its file, and stores the event. */
void ensio_opened(struct ensio_thread *thread, uint16_t call, int folder, const char *path, int flags, int result,
                  uint64_t start, uint64_t duration);

/* Gives a file that was opened without a name (O_TMPFILE) the one of a link to its descriptor, if linkat succeeded.
 * Returns the folder of the link. */
int ensio_linked(int result, int from_folder, const char *from, int folder, const char *path);

/* After a call on a path. `most`: the number of its bytes that the call left unchanged; if the path is longer, its name
 * is unknown. `error`: the call's errno, or 0. `is_only_path`: the call has no other path, which could be the one that
 * was not found. An empty path, or NULL, means the folder's descriptor itself. */
void ensio_on_path(struct ensio_thread *thread, uint16_t call, int folder, const char *path, uint32_t most, int error,
                   int is_only_path, uint64_t start, uint64_t duration);

/* After a write to a descriptor whose calls are not recorded, which returned `moved`, or minus an errno. The event of a
 * failure is stored: a full file system shows in the files that a program writes first, whatever they are. */
void ensio_write_left_out(struct ensio_thread *thread, uint16_t call, int fd, uint64_t requested, int64_t moved,
                          uint64_t start);

/* The depth of a call on an open file of MPI. Pending non-blocking I/O may cause the call, even if MPI makes progress
 * in a call or a thread that is not recorded. */
static inline uint32_t ensio_depth_of_mpi(uint32_t depth)
{
    return depth & ENSIO_IN_MPI || !__atomic_load_n(&ensio_io_pending, __ATOMIC_RELAXED)
               ? depth
               : (depth ? depth : 1) | ENSIO_IN_MPI;
}

/* Stores a call on such a file. */
void ensio_store_of_mpi(uint8_t flags, struct ensio_thread *thread, uint16_t call, uint32_t file, int64_t offset,
                        uint64_t requested, int64_t moved, uint64_t start, uint64_t duration);

/* The flags of the event of a read or write on an open file. */
static inline uint8_t ensio_flags_of_transfer(const struct ensio_open_file *open_file, int writes)
{
    return (uint8_t)(writes ? open_file->flags & ENSIO_WAITS_FOR_DEVICE : 0);
}

#define ENSIO_OWN_POSITION INT64_MIN /* the offset of a call that is given none */

/* A call that copies reads one file and writes another. It is an event on each, if both are recorded and it moved
 * bytes: both have its whole time, and the write is inside the read, so that sums of time have it once. A call that
 * moved nothing is an event on the first file only. The program has no buffer, so the count that it gives is a limit:
 * what moved is what was requested. */
struct ensio_end {
    uint16_t call;
    int fd;
    uint32_t number, file; /* the open file before the call, and its file */
    const int64_t *at;     /* the offset, which the call advances; NULL: the position of the open file */
};
struct ensio_end ensio_end_of(uint16_t call, int fd, const void *at);
void ensio_copied(struct ensio_thread *thread, const struct ensio_end *first, const struct ensio_end *second,
                  int64_t moved, uint64_t start, uint64_t duration);

/* Called before a close, because another thread may get the same descriptor before the call returns. Sets the file;
 * returns whether the call is recorded. */
int ensio_closing(struct ensio_thread *thread, int fd, uint32_t *file);

/* After a dup; `number` is the open file of the old descriptor. */
void ensio_duplicated(struct ensio_thread *thread, uint16_t call, int old, uint32_t number, int result, uint64_t start,
                      uint64_t duration);

/* Descriptors from `first` to `last` are about to be closed. */
void ensio_forget(int first, int last);

#endif
