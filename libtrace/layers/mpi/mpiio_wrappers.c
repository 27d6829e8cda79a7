/* mpiio_wrappers.c: the wrappers of MPI-IO in C, generated from their table. In libensio-mpi.a they are several
 * objects, so that a program needs of its MPI only the functions that it calls: ENSIO_PART 1 are the calls of MPI-2, 2
 * the later ones, 3 those with large counts. */
#include "mpi_wrapping.h"
#include "mpiio.h"
#include "query.h"

#ifdef ENSIO_PRELOAD
#define HAS_PART(part) 1
#else
#define HAS_PART(part) (ENSIO_PART == (part))
#endif

enum {
#define CALL(number, call, op) CALL_##call = (number),
#include <calls/mpiio.def>
};
#undef CALL

#define CARRIES_READ ENSIO_CARRIED_READ
#define CARRIES_WRITE ENSIO_CARRIED_WRITE

#define PARAMETER_AT_POSITION
#define PARAMETER_AT_OFFSET int64_t offset,
#define PARAMETER_AT_SHARED
#define ARGUMENT_AT_POSITION
#define ARGUMENT_AT_OFFSET offset,
#define ARGUMENT_AT_SHARED
#define OFFSET_AT_POSITION 0
#define OFFSET_AT_OFFSET offset
#define OFFSET_AT_SHARED 0

#define BEGIN_OR_RETURN(direction, call_, where, real_call) \
    int result; \
    ENTER_OR_PASS(thread, WANTED(call_), result = (real_call), result) \
    struct ensio_io io = {.call = CALL_MPI_##call_, .carries = CARRIES_##direction}; \
    if (!ensio_mpiio_begin(&io, file, ENSIO_##where, OFFSET_##where, count, type)) \
        LEAVE_UNRECORDED(thread, result = (real_call), result);

#define TRANSFER_NAMED(direction, call, symbol, where, count_type) \
    ENSIO_WRAPPER(int, symbol, \
                  (uintptr_t file, PARAMETER_##where void *data, count_type count, uintptr_t type, void *status)) \
    { \
        __auto_type real = ENSIO_REAL(symbol); \
        BEGIN_OR_RETURN(direction, call, where, real(file, ARGUMENT_##where data, count, type, status)) \
        char own[ENSIO_MPI_STATUS_ROOM] = {0}; \
        void *const filled = status == ensio_mpi()->status_ignore ? own : status; \
        MPI_TIMED(thread, (uint32_t)io.carries << 8, result = real(file, ARGUMENT_##where data, count, type, filled)); \
        io.start = start; \
        ensio_mpiio_end(thread, &io, result, filled, duration); \
        return result; \
    }

#define START_NAMED(direction, call, symbol, where, count_type) \
    ENSIO_WRAPPER(int, symbol, \
                  (uintptr_t file, PARAMETER_##where void *data, count_type count, uintptr_t type, void *request)) \
    { \
        __auto_type real = ENSIO_REAL(symbol); \
        BEGIN_OR_RETURN(direction, call, where, real(file, ARGUMENT_##where data, count, type, request)) \
        ensio_io_starting(&io); \
        MPI_TIMED(thread, (uint32_t)io.carries << 8, \
                  result = real(file, ARGUMENT_##where data, count, type, request)); \
        io.start = start; \
        ensio_io_started(thread, &io, result, result ? 0 : ensio_mpi_request_in(ensio_mpi(), request, 0), duration); \
        return result; \
    }

#define SPLIT_BEGIN_NAMED(direction, call, symbol, where, count_type) \
    ENSIO_WRAPPER(int, symbol, (uintptr_t file, PARAMETER_##where void *data, count_type count, uintptr_t type)) \
    { \
        __auto_type real = ENSIO_REAL(symbol); \
        BEGIN_OR_RETURN(direction, call##_begin, where, real(file, ARGUMENT_##where data, count, type)) \
        MPI_TIMED(thread, (uint32_t)io.carries << 8, result = real(file, ARGUMENT_##where data, count, type)); \
        io.start = start; \
        ensio_mpiio_split_begun(thread, file, &io, result, duration); \
        return result; \
    }

#define SPLIT_END_NAMED(direction, call, symbol) \
    ENSIO_WRAPPER(int, symbol, (uintptr_t file, void *data, void *status)) \
    { \
        __auto_type real = ENSIO_REAL(symbol); \
        int result; \
        ENTER_OR_PASS(thread, WANTED(call##_begin), result = real(file, data, status), result) \
        char own[ENSIO_MPI_STATUS_ROOM] = {0}; \
        void *const filled = status == ensio_mpi()->status_ignore ? own : status; \
        MPI_TIMED(thread, (uint32_t)CARRIES_##direction << 8, result = real(file, data, filled)); \
        ensio_mpiio_split_ended(thread, CALL_MPI_##call##_end, file, CARRIES_##direction, result, filled, start, \
                                duration); \
        return result; \
    }

#if HAS_PART(1)
#define TRANSFER(direction, call, where) TRANSFER_NAMED(direction, File_##call, MPI_File_##call, where, int)
#define START(direction, call, where) START_NAMED(direction, File_##call, MPI_File_##call, where, int)
#define SPLIT(direction, call, where) \
    SPLIT_BEGIN_NAMED(direction, File_##call, MPI_File_##call##_begin, where, int) \
    SPLIT_END_NAMED(direction, File_##call, MPI_File_##call##_end)
#define LATER_START(direction, call, where)
#define OTHER(call)
#include <calls/mpiio.def>
#endif

#if HAS_PART(2)
#define TRANSFER(direction, call, where)
#define START(direction, call, where)
#define SPLIT(direction, call, where)
#define LATER_START(direction, call, where) START_NAMED(direction, File_##call, MPI_File_##call, where, int)
#define OTHER(call)
#include <calls/mpiio.def>
#endif

#if HAS_PART(3)
#define TRANSFER(direction, call, where) TRANSFER_NAMED(direction, File_##call, MPI_File_##call##_c, where, int64_t)
#define START(direction, call, where) START_NAMED(direction, File_##call, MPI_File_##call##_c, where, int64_t)
#define SPLIT(direction, call, where) \
    SPLIT_BEGIN_NAMED(direction, File_##call, MPI_File_##call##_begin_c, where, int64_t)
#define LATER_START(direction, call, where) START_NAMED(direction, File_##call, MPI_File_##call##_c, where, int64_t)
#define OTHER(call)
#include <calls/mpiio.def>
#endif

#if HAS_PART(1)
ENSIO_WRAPPER(int, MPI_File_open, (uintptr_t comm, const char *path, int mode, uintptr_t info, void *file))
{
    int result;
    ENTER_OR_PASS(thread, WANTED(File_open), result = ENSIO_REAL(MPI_File_open)(comm, path, mode, info, file), result)
    MPI_TIMED(thread, 0, result = ENSIO_REAL(MPI_File_open)(comm, path, mode, info, file));
    ensio_mpiio_opened(thread, comm, path, mode, info, result ? 0 : *(uintptr_t *)file, result, start, duration);
    return result;
}

ENSIO_WRAPPER(int, MPI_File_delete, (const char *path, uintptr_t info))
{
    int result;
    ENTER_OR_PASS(thread, WANTED(File_delete), result = ENSIO_REAL(MPI_File_delete)(path, info), result)
    MPI_TIMED(thread, 0, result = ENSIO_REAL(MPI_File_delete)(path, info));
    ensio_mpiio_deleted(thread, path, result, start, duration);
    return result;
}

/* Calls on an open file without data. `own` is the file's handle; `bytes` and `offset` are those of the event. */
#define ON_FILE(call, parameters, arguments, own, before, bytes, offset) \
    ENSIO_WRAPPER(int, MPI_File_##call, parameters) \
    { \
        int result, left_out; \
        ENTER_OR_PASS(thread, WANTED(File_##call), result = ENSIO_REAL(MPI_File_##call) arguments, result) \
        const uint32_t number = ensio_mpiio_file(own, &left_out); \
        before; \
        if (left_out) \
            LEAVE_UNRECORDED(thread, result = ENSIO_REAL(MPI_File_##call) arguments, result); \
        MPI_TIMED(thread, 0, result = ENSIO_REAL(MPI_File_##call) arguments); \
        const uint64_t bytes_ = (uint64_t)(bytes); \
        ensio_store(thread, CALL_MPI_File_##call, number, result ? -1 : (offset), bytes_, \
                    -(int64_t)ensio_mpi_errno(result), start, duration); \
        return result; \
    }

ON_FILE(close, (uintptr_t * file), (file), file ? *file : 0, if (file) ensio_mpiio_forget(*file), 0, -1)
ON_FILE(set_view,
        (uintptr_t file, int64_t displacement, uintptr_t etype, uintptr_t filetype, const char *representation,
         uintptr_t info),
        (file, displacement, etype, filetype, representation, info), file, (void)0,
        ensio_mpiio_viewed(file, displacement, etype, filetype, result), displacement)
ON_FILE(set_size, (uintptr_t file, int64_t size), (file, size), file, (void)0, 0, size)
ON_FILE(get_size, (uintptr_t file, int64_t *size), (file, size), file, (void)0, 0, -1)
ON_FILE(preallocate, (uintptr_t file, int64_t size), (file, size), file, (void)0, size, 0)
ON_FILE(sync, (uintptr_t file), (file), file, (void)0, 0, -1)
#ifndef ENSIO_PROFILING_NAMES /* Darshan passes none of these on, and programs call PMPI_File_seek to bypass all tools \
                               */
ON_FILE(seek, (uintptr_t file, int64_t offset, int whence), (file, offset, whence), file, (void)0, 0,
        ensio_mpiio_position(file))
#endif
ON_FILE(seek_shared, (uintptr_t file, int64_t offset, int whence), (file, offset, whence), file, (void)0, 0, -1)
ON_FILE(set_info, (uintptr_t file, uintptr_t info), (file, info), file, (void)0, 0, -1)
#endif
