/* posix_wrappers.c: the wrappers of the POSIX calls, generated from their table; compiled once for --wrap and once for
 * preload. */
#include "posix.h"

#include <calls/calls.h>
#include <core/recorder.h>
#include <files/aio_requests.h>
#include <files/descriptors.h>
#include <files/folders.h>
#include <files/names.h>
#include <layers/program_memory.h>
#include <layers/recording.h>
#include <layers/wrapping.h>
#include <process/lifecycle.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/uio.h>
#include <unistd.h>

enum { OP_open, OP_close, OP_read, OP_write, OP_seek, OP_sync, OP_meta };
enum {
#define CALL(number, call, op) CALL_##call = (number), OP_OF_##call = OP_##op,
#include <calls/posix.def>
};
#undef CALL

#define AT_POSITION ENSIO_OWN_POSITION
#define AT_OR_POSITION (how & RWF_APPEND ? (ensio_descriptor_moved(fd, -1), -1) : at == -1 ? AT_POSITION : at)
#define VECTOR ensio_vector_bytes(parts, count, moved)
#define ERRNO (_Generic(result, char * : !result, default : (intptr_t)result < 0) ? errno : 0)
#define STATFS_BYTES sizeof(struct statfs64)

/* A call on a descriptor whose calls are not recorded. `bytes_` may read a vector, which needs `moved`. */
#define LEFT_OUT(call, symbol, arguments, bytes_) \
    ssize_t result; \
    if ((int)OP_OF_##call != (int)OP_write) { \
        result = ENSIO_REAL(symbol) arguments; \
        thread->excluded_calls++; \
        ensio_leave_out_read(result); \
        return result; \
    } \
    TIMED_IF_FAILED(thread, 0, result, ENSIO_REAL(symbol) arguments); \
    const int64_t moved = result < 0 ? -(int64_t)errno : result; \
    ensio_write_left_out(thread, CALL_##call, fd, (uint64_t)(bytes_), moved, start); \
    return result

#define TRANSFER(call, symbol, parameters, arguments, bytes_, offset_) \
    ENSIO_WRAPPER(ssize_t, symbol, parameters) \
    { \
        RECORD_OR(open_file, fd, ENSIO_REAL(symbol) arguments, LEFT_OUT(call, symbol, arguments, bytes_)); \
        ssize_t result; \
        TIMED(thread, result, ENSIO_REAL(symbol) arguments); \
        const int64_t moved = result < 0 ? -(int64_t)errno : result, given = (offset_); \
        const int64_t offset = \
            given == AT_POSITION ? ensio_position(fd, open_file, moved) \
            : (int)OP_OF_##call == (int)OP_write && ENSIO_UNLIKELY(open_file->flags & ENSIO_APPENDS) ? -1 \
                                                                                                     : given; \
        const uint8_t flags = ensio_flags_of_transfer(open_file, (int)OP_OF_##call == (int)OP_write); \
        if (ENSIO_UNLIKELY(open_file->of_mpi)) \
            ensio_store_of_mpi(flags, thread, CALL_##call, file, offset, (uint64_t)(bytes_), moved, start, duration); \
        else \
            ensio_store_with(flags, thread, CALL_##call, file, offset, (uint64_t)(bytes_), moved, start, duration); \
        return result; \
    }

#define COPY(call, other, symbol, parameters, arguments, fd, at_, other_fd, other_at) \
    ENSIO_WRAPPER(ssize_t, symbol, parameters) \
    { \
        struct ensio_thread *thread = &ensio_thread; \
        if (ENSIO_UNLIKELY(!ensio_ready(thread))) \
            return ENSIO_REAL(symbol) arguments; \
        const struct ensio_end first = ensio_end_of(CALL_##call, fd, at_); \
        const struct ensio_end second = ensio_end_of(CALL_##other, other_fd, other_at); \
        ssize_t result; \
        TIMED(thread, result, ENSIO_REAL(symbol) arguments); \
        ensio_copied(thread, &first, &second, result < 0 ? -(int64_t)errno : result, start, duration); \
        return result; \
    }

#define ON_FILE(call, symbol, type, parameters, arguments, bytes_, offset, error) \
    ENSIO_WRAPPER(type, symbol, parameters) \
    { \
        RECORD_OR_PASS(open_file, fd, ENSIO_REAL(symbol) arguments); \
        type result; \
        TIMED(thread, result, ENSIO_REAL(symbol) arguments); \
        ensio_store(thread, CALL_##call, file, (offset), (uint64_t)(bytes_), -(int64_t)(error), start, duration); \
        return result; \
    }

/* In a static program, the C library's internal threads call this to carry out an aio_fsync, which is recorded
 * already. */
#define SYNC(call, symbol) \
    ENSIO_WRAPPER(int, symbol, (int fd)) \
    { \
        if (ENSIO_UNLIKELY(ensio_request_syncs) && ensio_request_carried_out(fd)) \
            return ENSIO_REAL(symbol)(fd); \
        RECORD_OR_PASS(open_file, fd, ENSIO_REAL(symbol)(fd)); \
        int result; \
        TIMED(thread, result, ENSIO_REAL(symbol)(fd)); \
        ensio_store(thread, CALL_##call, file, -1, 0, -(int64_t)ERRNO, start, duration); \
        return result; \
    }

/* A call that concerns no file, and cannot fail. */
#define SYNC_ALL(call, symbol) \
    ENSIO_WRAPPER(void, symbol, (void)) \
    { \
        struct ensio_thread *thread = &ensio_thread; \
        if (ENSIO_UNLIKELY(!ensio_ready(thread))) { \
            ENSIO_REAL(symbol)(); \
            return; \
        } \
        int64_t result; \
        TIMED(thread, result, (ENSIO_REAL(symbol)(), 0)); \
        ensio_store(thread, CALL_##call, 0, -1, 0, result, start, duration); \
    }

/* A path may mean another file after a removal or a renaming, and the working folder may have another name. */
static inline void note_change(int call, int failed)
{
    const int removes = call == CALL_unlink || call == CALL_unlinkat || call == CALL_remove;
    const int renames = call == CALL_rename || call == CALL_renameat || call == CALL_renameat2;
    if (failed || !(removes || renames || call == CALL_rmdir))
        return;
    ensio_names_change();
    if (renames || call == CALL_rmdir || call == CALL_remove || call == CALL_unlinkat)
        ensio_folders_forget();
}

#define ON_PATH(call, symbol, type, parameters, arguments, folder, path) \
    ENSIO_WRAPPER(type, symbol, parameters) \
    { \
        struct ensio_thread *thread = &ensio_thread; \
        if (ENSIO_UNLIKELY(!ensio_ready(thread))) \
            return ENSIO_REAL(symbol) arguments; \
        type result; \
        TIMED(thread, result, ENSIO_REAL(symbol) arguments); \
        note_change(CALL_##call, result != 0); \
        ensio_on_path(thread, CALL_##call, folder, path, ENSIO_LONGEST_PATH, ERRNO, 0, start, duration); \
        return result; \
    }

#define OF_LINK(folder) ensio_linked(result, from_folder, from, folder, path)

/* If the result overwrites the path, a copy of the path is kept. It is on the stack only if it is needed, because a
 * signal handler's stack may be small. */
#define ON_PATH_INTO(call, symbol, type, parameters, arguments, folder, path, room) \
    ENSIO_WRAPPER(type, symbol, parameters) \
    { \
        struct ensio_thread *thread = &ensio_thread; \
        if (ENSIO_UNLIKELY(!ensio_ready(thread))) \
            return ENSIO_REAL(symbol) arguments; \
        const char *kept = path; \
        uint32_t most = ensio_path_before(path, to); \
        if (ENSIO_UNLIKELY(ensio_path_in_result(path, to, room))) { \
            const int64_t length = ensio_path_length(path, ENSIO_LONGEST_PATH, 0); \
            char *const copy = __builtin_alloca((size_t)length + 2); \
            kept = length < 0 ? NULL : memcpy(copy, path, (size_t)length); \
            copy[length < 0 ? 0 : length] = '\0'; \
            most = ENSIO_LONGEST_PATH; \
        } \
        type result; \
        TIMED(thread, result, ENSIO_REAL(symbol) arguments); \
        ensio_on_path(thread, CALL_##call, folder, kept, most, ERRNO, 1, start, duration); \
        return result; \
    }

#define OLD_ON_FILE(call, symbol, type, parameters, arguments, bytes, offset, error) \
    ENSIO_MAY_BE_MISSING(type, symbol, parameters) \
    ON_FILE(call, symbol, type, parameters, arguments, bytes, offset, error)

#define OLD_ON_PATH_INTO(call, symbol, type, parameters, arguments, folder, path, room) \
    ENSIO_MAY_BE_MISSING(type, symbol, parameters) \
    ON_PATH_INTO(call, symbol, type, parameters, arguments, folder, path, room)

#define SEEK(call, symbol, type) \
    ENSIO_WRAPPER(type, symbol, (int fd, type to, int whence)) \
    { \
        RECORD_OR_PASS(open_file, fd, ENSIO_REAL(symbol)(fd, to, whence)); \
        type result; \
        TIMED(thread, result, ENSIO_REAL(symbol)(fd, to, whence)); \
        if (result >= 0) \
            __atomic_store_n(&open_file->position, (int64_t)result, __ATOMIC_RELAXED); \
        ensio_store(thread, CALL_##call, file, result < 0 ? -1 : result, 0, result < 0 ? -(int64_t)errno : 0, start, \
                    duration); \
        return result; \
    }

#define OPEN_BODY(call, symbol, arguments, folder, path, flags) \
    struct ensio_thread *thread = &ensio_thread; \
    if (ENSIO_UNLIKELY(!ensio_ready(thread))) \
        return ENSIO_REAL(symbol) arguments; \
    int result; \
    TIMED(thread, result, ENSIO_REAL(symbol) arguments); \
    ensio_opened(thread, CALL_##call, folder, path, flags, result, start, duration); \
    return result;

#define OPEN(call, symbol, parameters, arguments, folder, path, flags) \
    ENSIO_WRAPPER(int, symbol, parameters) \
    { \
        OPEN_BODY(call, symbol, arguments, folder, path, flags) \
    }

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
        OPEN_BODY(call, symbol, arguments, folder, path, flags) \
    }

#define CLOSE(call, symbol) \
    ENSIO_WRAPPER(int, symbol, (int fd)) \
    { \
        struct ensio_thread *thread = &ensio_thread; \
        uint32_t file; \
        if (ENSIO_UNLIKELY(!ensio_ready(thread)) || !ensio_closing(thread, fd, &file)) \
            return ENSIO_REAL(symbol)(fd); \
        int result; \
        TIMED(thread, result, ENSIO_REAL(symbol)(fd)); \
        ensio_store(thread, CALL_##call, file, -1, 0, result < 0 ? -(int64_t)errno : 0, start, duration); \
        return result; \
    }

#define DUP(call, symbol, parameters, arguments) \
    ENSIO_WRAPPER(int, symbol, parameters) \
    { \
        struct ensio_thread *thread = &ensio_thread; \
        if (ENSIO_UNLIKELY(!ensio_ready(thread))) \
            return ENSIO_REAL(symbol) arguments; \
        if (ENSIO_UNLIKELY(!ensio_is_owner())) { \
            ensio_spawned(); \
            return ENSIO_REAL(symbol) arguments; \
        } \
        const uint32_t number = ensio_descriptor(fd); \
        int result; \
        TIMED(thread, result, ENSIO_REAL(symbol) arguments); \
        ensio_duplicated(thread, CALL_##call, fd, number, result, start, duration); \
        return result; \
    }

static inline int locks(int command)
{
    return command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK || command == F_OFD_SETLKW;
}

/* Only commands that duplicate or lock are recorded; the others are not I/O. F_SETFL may change where writes go. */
#define FCNTL(call, lock, symbol) \
    ENSIO_WRAPPER(int, symbol, (int fd, int command, ...)) \
    { \
        va_list variable; \
        va_start(variable, command); \
        void *argument = va_arg(variable, void *); \
        va_end(variable); \
        if (locks(command)) { \
            RECORD_OR_PASS(open_file, fd, ENSIO_REAL(symbol)(fd, command, argument)); \
            int result; \
            TIMED(thread, result, ENSIO_REAL(symbol)(fd, command, argument)); \
            ensio_store(thread, CALL_##lock, file, -1, 0, -(int64_t)ERRNO, start, duration); \
            return result; \
        } \
        struct ensio_thread *thread = &ensio_thread; \
        if (command == F_SETFL && ensio_ready(thread)) \
            ensio_descriptor_moved(fd, ((intptr_t)argument & O_APPEND) != 0); \
        if ((command != F_DUPFD && command != F_DUPFD_CLOEXEC) || !ensio_ready(thread) || !ensio_is_owner()) \
            return ENSIO_REAL(symbol)(fd, command, argument); \
        const uint32_t number = ensio_descriptor(fd); \
        int result; \
        TIMED(thread, result, ENSIO_REAL(symbol)(fd, command, argument)); \
        ensio_duplicated(thread, CALL_##call, fd, number, result, start, duration); \
        return result; \
    }

#define OPENDIR(call, symbol) \
    ENSIO_WRAPPER(DIR *, symbol, (const char *path)) \
    { \
        struct ensio_thread *thread = &ensio_thread; \
        if (ENSIO_UNLIKELY(!ensio_ready(thread))) \
            return ENSIO_REAL(symbol)(path); \
        DIR *result; \
        TIMED(thread, result, ENSIO_REAL(symbol)(path)); \
        ensio_opened(thread, CALL_##call, AT_FDCWD, path, O_DIRECTORY, result ? dirfd(result) : -1, start, duration); \
        return result; \
    }

/* At the end of a folder readdir leaves errno unchanged; it sets errno if it fails. */
#define READDIR(call, symbol, type) \
    ENSIO_WRAPPER(type *, symbol, (DIR * folder)) \
    { \
        RECORD_OR_PASS(open_file, dirfd(folder), ENSIO_REAL(symbol)(folder)); \
        const int before = errno; \
        type *result; \
        errno = 0; \
        TIMED(thread, result, ENSIO_REAL(symbol)(folder)); \
        const int error = result ? 0 : errno; \
        if (errno == 0) \
            errno = before; \
        ensio_store(thread, CALL_##call, file, -1, 0, -(int64_t)error, start, duration); \
        return result; \
    }

#define CLOSEDIR(call, symbol) \
    ENSIO_WRAPPER(int, symbol, (DIR * folder)) \
    { \
        struct ensio_thread *thread = &ensio_thread; \
        uint32_t file; \
        if (!folder || ENSIO_UNLIKELY(!ensio_ready(thread)) || !ensio_closing(thread, dirfd(folder), &file)) \
            return ENSIO_REAL(symbol)(folder); \
        int result; \
        TIMED(thread, result, ENSIO_REAL(symbol)(folder)); \
        ensio_store(thread, CALL_##call, file, -1, 0, result < 0 ? -(int64_t)errno : 0, start, duration); \
        return result; \
    }

#include <calls/posix.def>

void ensio_posix_resolve(void)
{
#ifdef ENSIO_PRELOAD
#undef SYMBOL
#undef OLD_SYMBOL
#define SYMBOL(symbol) (void)ENSIO_REAL(symbol);
#define OLD_SYMBOL(symbol)
#include <calls/posix.def>
#endif
}
