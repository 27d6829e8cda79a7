/* mpiio_fortran.c: the wrappers of MPI-IO in Fortran, generated from the table of MPI-IO. */
#include "fortran.h"
#include "mpiio.h"
#include "query.h"

#include <string.h>

enum {
#define CALL(number, call, op) CALL_##call = (number),
#include <calls/mpiio.def>
};
#undef CALL

#define CARRIES_READ ENSIO_CARRIED_READ
#define CARRIES_WRITE ENSIO_CARRIED_WRITE

#define PARAMETER_AT_POSITION
#define PARAMETER_AT_OFFSET int64_t *offset,
#define PARAMETER_AT_SHARED
#define ARGUMENT_AT_POSITION
#define ARGUMENT_AT_OFFSET offset,
#define ARGUMENT_AT_SHARED
#define OFFSET_AT_POSITION 0
#define OFFSET_AT_OFFSET *offset
#define OFFSET_AT_SHARED 0

#define BEGIN_OR_RETURN(direction, call_, where, real_call) \
    ENTER_OR_PASS(thread, WANTED(call_), real_call, ) \
    ERROR_OR_OWN; \
    struct ensio_io io = {.call = CALL_MPI_##call_, .carries = CARRIES_##direction}; \
    if (!ensio_mpiio_begin(&io, ensio_mpi_file_f2c(*file), ENSIO_##where, OFFSET_##where, *count, \
                           ensio_mpi_type_f2c(*type))) \
        LEAVE_UNRECORDED(thread, real_call, );

#define MOVING(direction, call, symbol, where) \
    FORTRAN_WRAPPER(symbol, \
                    (int *file, PARAMETER_##where void *data, int *count, int *type, void *status, int *error)) \
    { \
        __auto_type real = FORTRAN_REAL(symbol); \
        BEGIN_OR_RETURN(direction, call, where, real(file, ARGUMENT_##where data, count, type, status, error)) \
        char own[ENSIO_MPI_STATUS_ROOM] = {0}; \
        void *const filled = ensio_mpi_fortran_ignored(status) ? own : status; \
        MPI_TIMED(thread, (uint32_t)io.carries << 8, real(file, ARGUMENT_##where data, count, type, filled, error)); \
        io.start = start; \
        ensio_mpiio_end(thread, &io, *error, filled, duration); \
    }

#define STARTING(direction, call, symbol, where) \
    FORTRAN_WRAPPER(symbol, \
                    (int *file, PARAMETER_##where void *data, int *count, int *type, int *request, int *error)) \
    { \
        __auto_type real = FORTRAN_REAL(symbol); \
        BEGIN_OR_RETURN(direction, call, where, real(file, ARGUMENT_##where data, count, type, request, error)) \
        ensio_io_starting(&io); \
        MPI_TIMED(thread, (uint32_t)io.carries << 8, real(file, ARGUMENT_##where data, count, type, request, error)); \
        io.start = start; \
        ensio_io_started(thread, &io, *error, *error ? 0 : ensio_mpi_request_f2c(*request), duration); \
    }

#define SPLITTING(direction, call, begin, end, where) \
    FORTRAN_WRAPPER(begin, (int *file, PARAMETER_##where void *data, int *count, int *type, int *error)) \
    { \
        __auto_type real = FORTRAN_REAL(begin); \
        BEGIN_OR_RETURN(direction, call##_begin, where, real(file, ARGUMENT_##where data, count, type, error)) \
        MPI_TIMED(thread, (uint32_t)io.carries << 8, real(file, ARGUMENT_##where data, count, type, error)); \
        io.start = start; \
        ensio_mpiio_split_begun(thread, ensio_mpi_file_f2c(*file), &io, *error, duration); \
    } \
    FORTRAN_WRAPPER(end, (int *file, void *data, void *status, int *error)) \
    { \
        __auto_type real = FORTRAN_REAL(end); \
        ENTER_OR_PASS(thread, WANTED(call##_begin), real(file, data, status, error), ) \
        ERROR_OR_OWN; \
        char own[ENSIO_MPI_STATUS_ROOM] = {0}; \
        void *const filled = ensio_mpi_fortran_ignored(status) ? own : status; \
        const uintptr_t handle = ensio_mpi_file_f2c(*file); \
        MPI_TIMED(thread, (uint32_t)CARRIES_##direction << 8, real(file, data, filled, error)); \
        ensio_mpiio_split_ended(thread, CALL_MPI_##call##_end, handle, CARRIES_##direction, *error, filled, start, \
                                duration); \
    }

#if HAS_PART(2)
#define TRANSFER(direction, call, where) MOVING(direction, File_##call, BOUND(mpi_file_##call), where)
#define START(direction, call, where) STARTING(direction, File_##call, BOUND(mpi_file_##call), where)
#define SPLIT(direction, call, where) \
    SPLITTING(direction, File_##call, BOUND(mpi_file_##call##_begin), BOUND(mpi_file_##call##_end), where)
#define LATER_START(direction, call, where)
#define OTHER(call)
#include <calls/mpiio.def>
#endif

#if HAS_PART(3)
#define TRANSFER(direction, call, where)
#define START(direction, call, where)
#define SPLIT(direction, call, where)
#define LATER_START(direction, call, where) STARTING(direction, File_##call, BOUND(mpi_file_##call), where)
#define OTHER(call)
#include <calls/mpiio.def>
#endif

#if HAS_PART(1)
#define LONGEST_PATH 4096

/* Fortran pads strings with blanks. */
static const char *path_of(char *to, const char *from, size_t length)
{
    while (length > 0 && from[length - 1] == ' ')
        length--;
    while (length > 0 && *from == ' ') {
        from++;
        length--;
    }
    if (length >= LONGEST_PATH)
        length = LONGEST_PATH - 1;
    memcpy(to, from, length);
    to[length] = '\0';
    return to;
}

FORTRAN_WRAPPER(BOUND(mpi_file_open),
                (int *comm, const char *path, int *mode, int *info, int *file, int *error, size_t length))
{
    __auto_type real = FORTRAN_REAL(BOUND(mpi_file_open));
    char name[LONGEST_PATH];
    ENTER_OR_PASS(thread, WANTED(File_open), real(comm, path, mode, info, file, error, length), )
    ERROR_OR_OWN;
    MPI_TIMED(thread, 0, real(comm, path, mode, info, file, error, length));
    ensio_mpiio_opened(thread, ensio_mpi_comm_f2c(*comm), path_of(name, path, length), *mode, ensio_mpi_info_f2c(*info),
                       *error ? 0 : ensio_mpi_file_f2c(*file), *error, start, duration);
}

FORTRAN_WRAPPER(BOUND(mpi_file_delete), (const char *path, int *info, int *error, size_t length))
{
    __auto_type real = FORTRAN_REAL(BOUND(mpi_file_delete));
    char name[LONGEST_PATH];
    ENTER_OR_PASS(thread, WANTED(File_delete), real(path, info, error, length), )
    ERROR_OR_OWN;
    MPI_TIMED(thread, 0, real(path, info, error, length));
    ensio_mpiio_deleted(thread, path_of(name, path, length), *error, start, duration);
}

#define ON_FILE(call, symbol, parameters, arguments, before, bytes, offset) \
    FORTRAN_WRAPPER(symbol, parameters) \
    { \
        __auto_type real = FORTRAN_REAL(symbol); \
        int left_out; \
        ENTER_OR_PASS(thread, WANTED(File_##call), real arguments, ) \
        ERROR_OR_OWN; \
        const uintptr_t handle = ensio_mpi_file_f2c(*file); \
        const uint32_t number = ensio_mpiio_file(handle, &left_out); \
        before; \
        if (left_out) \
            LEAVE_UNRECORDED(thread, real arguments, ); \
        MPI_TIMED(thread, 0, real arguments); \
        const uint64_t bytes_ = (uint64_t)(bytes); \
        ensio_store(thread, CALL_MPI_File_##call, number, *error ? -1 : (offset), bytes_, \
                    -(int64_t)ensio_mpi_errno(*error), start, duration); \
    }

ON_FILE(close, BOUND(mpi_file_close), (int *file, int *error), (file, error), ensio_mpiio_forget(handle), 0, -1)
ON_FILE(set_view, BOUND(mpi_file_set_view),
        (int *file, int64_t *displacement, int *etype, int *filetype, const char *representation, int *info, int *error,
         size_t length),
        (file, displacement, etype, filetype, representation, info, error, length), (void)0,
        ensio_mpiio_viewed(handle, *displacement, ensio_mpi_type_f2c(*etype), ensio_mpi_type_f2c(*filetype), *error),
        *displacement)
ON_FILE(set_size, BOUND(mpi_file_set_size), (int *file, int64_t *size, int *error), (file, size, error), (void)0, 0,
        *size)
ON_FILE(get_size, BOUND(mpi_file_get_size), (int *file, int64_t *size, int *error), (file, size, error), (void)0, 0, -1)
ON_FILE(preallocate, BOUND(mpi_file_preallocate), (int *file, int64_t *size, int *error), (file, size, error), (void)0,
        *size, 0)
ON_FILE(sync, BOUND(mpi_file_sync), (int *file, int *error), (file, error), (void)0, 0, -1)
ON_FILE(seek, BOUND(mpi_file_seek), (int *file, int64_t *offset, int *whence, int *error),
        (file, offset, whence, error), (void)0, 0, ensio_mpiio_position(handle))
ON_FILE(seek_shared, BOUND(mpi_file_seek_shared), (int *file, int64_t *offset, int *whence, int *error),
        (file, offset, whence, error), (void)0, 0, -1)
ON_FILE(set_info, BOUND(mpi_file_set_info), (int *file, int *info, int *error), (file, info, error), (void)0, 0, -1)
#endif
