/* process.h: this process under the model, and its calls as the wrappers see them. */
#ifndef ENSIO_SHIM_PROCESS_H
#define ENSIO_SHIM_PROCESS_H

#include "delay.h"
#include "scope.h"

#include <stdint.h>

#define SHIM_OWN_POSITION INT64_MIN /* at the position of the open file */

/* Whether calls of the current thread are delayed: not before the library is initialised, and not in a child of
 * vfork. */
int shim_is_on(void);

/* Each begins a call in the model, or returns a ticket that is not waited for. None changes errno. */
struct shim_ticket shim_begin_transfer(int fd, uint16_t operation, int64_t bytes, int64_t offset, int sync_flags);
struct shim_ticket shim_begin_on_file(int fd, uint16_t operation);
struct shim_ticket shim_begin_on_path(int folder, const char *path, uint16_t operation);
struct shim_ticket shim_begin_open(int folder, const char *path, int flags);

/* A transfer of a file that is already looked up. */
struct shim_ticket shim_begin_known(const struct shim_file *file, uint16_t operation, int64_t bytes, int64_t offset,
                                    int through);

/* A call that moves no bytes; key 0: of no particular file. */
struct shim_ticket shim_begin_of(uint64_t key, uint16_t operation);

/* Counts a request of asynchronous I/O on a file under the model. */
void shim_count_asynchronous(int fd);

/* The position of an open file. */
int64_t shim_position(int fd);

/* The number of bytes in a file, or from its position to its end; -1: it is not a file. */
int64_t shim_left(int fd, int from_its_position);

/* Delays the thread until its call is complete in the model. */
void shim_end(struct shim_ticket ticket);

#endif
