/* posix.h: what a line of the POSIX table cannot say. All of these keep errno. */
#ifndef ENSIO_LAYERS_POSIX_H
#define ENSIO_LAYERS_POSIX_H

#include <core/recorder.h>

#include <sys/uio.h>

/* Bytes asked for by a vector of parts. The vector is read after the call, and only where the kernel could read it too. */
uint64_t ensio_vector_bytes(const struct iovec *parts, int count, int64_t moved);

/* After an open: ties the descriptor to its file, and stores the event. */
void ensio_opened(struct ensio_thread *thread, uint16_t call, int folder, const char *path, int flags, int result,
                  uint64_t start, uint64_t duration);

/* Before a close, not after: another thread may get the same descriptor while this one is still in the call. Gives the file;
 * returns whether the call is recorded. */
int ensio_closing(struct ensio_thread *thread, int fd, uint32_t *file);

/* After a dup; `number` is the open file that the old descriptor stood for. */
void ensio_duplicated(struct ensio_thread *thread, uint16_t call, int old, uint32_t number, int result, uint64_t start,
                      uint64_t duration);

/* Descriptors from `first` to `last` are about to end. */
void ensio_forget(int first, int last);

#endif
