/* posix.c: the wrappers of the POSIX calls, generated from the recorder's table.
 *
 * lseek, dup, fcntl, readdir and closedir are not wrapped, because they contact no server. The calls of
 * tracked_only.def are not wrapped either, because no state of descriptors is kept. */
#include "process.h"

#include <layers/wrapping.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { OP_open, OP_close, OP_read, OP_write, OP_seek, OP_sync, OP_meta };
enum {
#define CALL(number, call, op) CALL_##call = (number), OP_OF_##call = OP_##op,
#include <calls/posix.def>
};
#undef CALL

#define MOST_BYTES 0x7ffff000 /* the kernel moves no more in one call */
#define MOST_PARTS 1024       /* IOV_MAX: the kernel rejects more */

/* Bytes of a vector; 0 if it cannot be read. */
static int64_t vector_bytes(const struct iovec *parts, int count)
{
    struct iovec some[64];
    uint64_t bytes = 0;
    if (count < 0 || count > MOST_PARTS || !shim_is_on())
        return 0;
    for (int from = 0; from < count; from += 64) {
        const int n = count - from < 64 ? count - from : 64;
        if (shim_peek(some, parts + from, (size_t)n * sizeof *some) != (size_t)n * sizeof *some)
            return 0;
        for (int i = 0; i < n; i++)
            bytes += some[i].iov_len;
    }
    return bytes > INT64_MAX ? 0 : (int64_t)bytes;
}

/* The start of a call that takes the address of an offset, or NULL for the position. */
static int64_t offset_at(const void *at)
{
    int64_t offset;
    if (!at)
        return SHIM_OWN_POSITION;
    return shim_peek(&offset, at, sizeof offset) == sizeof offset ? offset : -1;
}

/* Bytes that a call can move. Programs copy by requesting more than any file holds; `source`: the file that is copied;
 * -1: unknown. */
static int64_t what_is_there(uint16_t operation, uint64_t bytes, int source, int from_its_position)
{
    if (operation == PFS_WRITE && source >= 0 && bytes > 0 && shim_is_on()) {
        const int64_t left = shim_left(source, from_its_position);
        if (left >= 0 && (uint64_t)left < bytes)
            return left;
    }
    return bytes < MOST_BYTES ? (int64_t)bytes : MOST_BYTES;
}

/* Advice does not contact the file system; the other calls on a descriptor are requests to the metadata server or
 * syncs. */
static struct shim_ticket begin_on_file(int fd, int call, int op)
{
    const struct shim_ticket nothing = {.slot = -1};
    if (call == CALL_posix_fadvise)
        return nothing;
    return shim_begin_on_file(fd, op == OP_sync ? PFS_SYNC : PFS_META);
}

#define AT_POSITION SHIM_OWN_POSITION
#define AT_OR_POSITION (sync_flags = how, at == -1 ? AT_POSITION : at)
#define VECTOR vector_bytes(parts, count)

#define TRANSFER(call, symbol, parameters, arguments, bytes_, offset_) \
    ENSIO_WRAPPER(ssize_t, symbol, parameters) \
    { \
        int sync_flags = 0; \
        const int64_t offset = (offset_); \
        const uint16_t operation = (int)OP_OF_##call == (int)OP_write ? PFS_WRITE : PFS_READ; \
        const struct shim_ticket ticket = shim_begin_transfer( \
            fd, operation, what_is_there(operation, (uint64_t)(bytes_), -1, 0), offset, sync_flags); \
        const ssize_t result = ENSIO_REAL(symbol) arguments; \
        shim_end(ticket); \
        return result; \
    }

/* A call that is one request: it begins in the model before the system makes it. */
#define HELD(type, symbol, parameters, arguments, begun) \
    ENSIO_WRAPPER(type, symbol, parameters) \
    { \
        const struct shim_ticket ticket = (begun); \
        type result = ENSIO_REAL(symbol) arguments; \
        shim_end(ticket); \
        return result; \
    }

#define OPERATION(call) ((int)OP_OF_##call == (int)OP_write ? PFS_WRITE : PFS_READ)

/* A copy is one request: to the file that the call is named for. */
#define COPY(call, other, symbol, parameters, arguments, fd, at, other_fd, other_at) \
    HELD(ssize_t, symbol, parameters, arguments, \
         shim_begin_transfer(fd, OPERATION(call), what_is_there(OPERATION(call), bytes, other_fd, !(other_at)), \
                             offset_at(at), 0))

#define ON_FILE(call, symbol, type, parameters, arguments, bytes, offset, error) \
    HELD(type, symbol, parameters, arguments, begin_on_file(fd, CALL_##call, OP_OF_##call))

#define SYNC(call, symbol) HELD(int, symbol, (int fd), (fd), shim_begin_on_file(fd, PFS_SYNC))

#define CLOSE(call, symbol) HELD(int, symbol, (int fd), (fd), shim_begin_on_file(fd, PFS_CLOSE))

#define ON_PATH(call, symbol, type, parameters, arguments, folder, path) \
    HELD(type, symbol, parameters, arguments, shim_begin_on_path(folder, path, PFS_META))

#define OLD_ON_FILE(call, symbol, type, parameters, arguments, bytes, offset, error) \
    ON_FILE(call, symbol, type, parameters, arguments, bytes, offset, error)

#define OLD_ON_PATH_INTO(call, symbol, type, parameters, arguments, folder, path, room) \
    ON_PATH(call, symbol, type, parameters, arguments, folder, path)

#define OPEN(call, symbol, parameters, arguments, folder, path, flags) \
    HELD(int, symbol, parameters, arguments, shim_begin_open(folder, path, flags))

/* The mode is passed only if a file may be created. */
#define OPEN_MODE(call, symbol, parameters, arguments, folder, path, flags) \
    ENSIO_WRAPPER(int, symbol, parameters) \
    { \
        mode_t mode = 0; \
        if ((flags)&O_CREAT || ((flags)&O_TMPFILE) == O_TMPFILE) { \
            va_list variable; \
            va_start(variable, flags); \
            mode = va_arg(variable, mode_t); \
            va_end(variable); \
        } \
        const struct shim_ticket ticket = shim_begin_open(folder, path, flags); \
        const int result = ENSIO_REAL(symbol) arguments; \
        shim_end(ticket); \
        return result; \
    }

#define SYNC_ALL(call, symbol)

#define OPENDIR(call, symbol) \
    HELD(DIR *, symbol, (const char *path), (path), shim_begin_on_path(AT_FDCWD, path, PFS_META))

#include <calls/posix.def>

/* Looking up a function may allocate memory and open files, so it is done before the program begins if possible. */
__attribute__((constructor)) static void resolve(void)
{
#undef SYMBOL
#undef OLD_SYMBOL
#define SYMBOL(symbol) (void)ENSIO_REAL(symbol);
#define OLD_SYMBOL(symbol)
#define SEEK(call, symbol, type)
#define SYNC_ALL(call, symbol)
#define DUP(call, symbol, parameters, arguments)
#define FCNTL(call, lock, symbol)
#define READDIR(call, symbol, type)
#define CLOSEDIR(call, symbol)
#include <calls/posix.def>
}
