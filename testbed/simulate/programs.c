#include "programs.h"

#include "recorded.h"

#include <pfsmodel/pfsmodel.h>
#include <string.h>

/* clang-format off */
#define END {STEP_END, EVERYBODY, 0, 0, 0}
#define ENTER(call) {STEP_ENTER, EVERYBODY, RECORDED_##call, 0, 0}
#define LEAVE {STEP_LEAVE, EVERYBODY, 0, 0, 0}
#define DELAY {STEP_DELAY, EVERYBODY, 0, 0, 0}
#define BARRIER(kind) {STEP_BARRIER, EVERYBODY, 0, BARRIER_##kind, 0}
#define CALLS(who, call, operation, place) {STEP_CALL, who, RECORDED_##call, PFS_##operation, PLACE_##place}
#define UNSEEN(operation, place) {STEP_CALL, EVERYBODY, NOT_RECORDED, PFS_##operation, PLACE_##place}
#define PIECES(call, operation) {STEP_PIECES, EVERYBODY, RECORDED_##call, PFS_##operation, PLACE_DATA}
#define AGGREGATE(call, operation) {STEP_AGGREGATE, EVERYBODY, RECORDED_##call, PFS_##operation, PLACE_DATA}

#define SIMPLE(call, operation, place) {CALLS(EVERYBODY, call, operation, place), END}
#define LOCAL(call) {ENTER(call), DELAY, LEAVE, END}

/* Rank 0 creates or opens the file; the others open it afterwards. */
#define MPI_OPEN \
    ENTER(MPI_File_open), DELAY, BARRIER(PLAIN), CALLS(ROOT, open, OPEN, FILE), BARRIER(PLAIN), \
    CALLS(OTHERS, open, OPEN, FILE), BARRIER(PLAIN), LEAVE
#define MPI_CLOSE ENTER(MPI_File_close), DELAY, CALLS(EVERYBODY, close, CLOSE, FILE), BARRIER(PLAIN), LEAVE
#define ALONE(call, inner, operation) ENTER(call), DELAY, PIECES(inner, operation), LEAVE
#define TOGETHER(call, inner, operation) \
    ENTER(call), DELAY, BARRIER(DOMAINS), AGGREGATE(inner, operation), BARRIER(PLAIN), LEAVE
/* Task 0 writes for all; the library's internal MPI-IO call around it is recorded too. */
#define SMALL_WRITE(place) \
    {STEP_ENTER, ROOT, RECORDED_MPI_File_write_at, 0, PLACE_##place}, {STEP_DELAY, ROOT, 0, 0, 0}, \
    CALLS(ROOT, pwrite, WRITE, place), {STEP_LEAVE, ROOT, 0, 0, 0}
#define SMALL_READ(place) \
    {STEP_ENTER, ROOT, RECORDED_MPI_File_read_at, 0, PLACE_##place}, {STEP_DELAY, ROOT, 0, 0, 0}, \
    CALLS(ROOT, pread, READ, place), {STEP_LEAVE, ROOT, 0, 0, 0}
/* clang-format on */

#define PROGRAM(name, ...) static const struct step name[] = __VA_ARGS__;

PROGRAM(posix_open, SIMPLE(open, OPEN, FILE))
PROGRAM(posix_close, SIMPLE(close, CLOSE, FILE))
PROGRAM(posix_lseek, LOCAL(lseek))
PROGRAM(posix_read, SIMPLE(read, READ, DATA))
PROGRAM(posix_write, SIMPLE(write, WRITE, DATA))
PROGRAM(posix_pread, SIMPLE(pread, READ, DATA))
PROGRAM(posix_pwrite, SIMPLE(pwrite, WRITE, DATA))
PROGRAM(posix_fsync, SIMPLE(fsync, SYNC, FILE))
PROGRAM(posix_fdatasync, SIMPLE(fdatasync, SYNC, FILE))
PROGRAM(posix_stat, SIMPLE(stat, META, FILE))
PROGRAM(posix_unlink, SIMPLE(unlink, META, FILE))
PROGRAM(posix_ftruncate, SIMPLE(ftruncate, META, FILE))

#define FLUSH \
    { \
        STEP_FLUSH, EVERYBODY, NOT_RECORDED, PFS_WRITE, PLACE_DATA \
    }
#define STREAM_DATA(operation) \
    { \
        STEP_STREAM_DATA, EVERYBODY, NOT_RECORDED, PFS_##operation, PLACE_DATA \
    }
PROGRAM(stdio_fopen, SIMPLE(fopen, OPEN, FILE))
PROGRAM(stdio_fclose, {ENTER(fclose), FLUSH, UNSEEN(CLOSE, FILE), LEAVE, END})
PROGRAM(stdio_fseek, {ENTER(fseek), FLUSH, DELAY, LEAVE, END})
PROGRAM(stdio_fread, {ENTER(fread), FLUSH, STREAM_DATA(READ), LEAVE, END})
PROGRAM(stdio_fwrite, {ENTER(fwrite), FLUSH, STREAM_DATA(WRITE), LEAVE, END})
PROGRAM(stdio_fflush, {ENTER(fflush), DELAY, FLUSH, LEAVE, END})

PROGRAM(mpiio_open, {MPI_OPEN, END})
PROGRAM(mpiio_close, {MPI_CLOSE, END})
PROGRAM(mpiio_open_alone, {ENTER(MPI_File_open), DELAY, CALLS(EVERYBODY, open, OPEN, FILE), LEAVE, END})
PROGRAM(mpiio_close_alone, {ENTER(MPI_File_close), DELAY, CALLS(EVERYBODY, close, CLOSE, FILE), LEAVE, END})
PROGRAM(mpiio_read_at, {ALONE(MPI_File_read_at, pread, READ), END})
PROGRAM(mpiio_write_at, {ALONE(MPI_File_write_at, pwrite, WRITE), END})
PROGRAM(mpiio_read, {ALONE(MPI_File_read, pread, READ), END})
PROGRAM(mpiio_write, {ALONE(MPI_File_write, pwrite, WRITE), END})
PROGRAM(mpiio_read_at_all, {TOGETHER(MPI_File_read_at_all, pread, READ), END})
PROGRAM(mpiio_write_at_all, {TOGETHER(MPI_File_write_at_all, pwrite, WRITE), END})
PROGRAM(mpiio_read_all, {TOGETHER(MPI_File_read_all, pread, READ), END})
PROGRAM(mpiio_write_all, {TOGETHER(MPI_File_write_all, pwrite, WRITE), END})
PROGRAM(mpiio_seek, LOCAL(MPI_File_seek))
PROGRAM(mpiio_sync, {ENTER(MPI_File_sync), DELAY, CALLS(EVERYBODY, fsync, SYNC, FILE), BARRIER(PLAIN), LEAVE, END})
PROGRAM(mpiio_set_size, {ENTER(MPI_File_set_size), DELAY, BARRIER(PLAIN), CALLS(ROOT, ftruncate, META, FILE),
                         BARRIER(PLAIN), LEAVE, END})
PROGRAM(mpiio_sync_alone, {ENTER(MPI_File_sync), DELAY, CALLS(EVERYBODY, fsync, SYNC, FILE), LEAVE, END})
PROGRAM(mpiio_set_size_alone, {ENTER(MPI_File_set_size), DELAY, CALLS(EVERYBODY, ftruncate, META, FILE), LEAVE, END})

PROGRAM(hdf5_create, {ENTER(H5Fcreate), DELAY, MPI_OPEN, LEAVE, END})
PROGRAM(hdf5_open, {ENTER(H5Fopen), DELAY, MPI_OPEN, SMALL_READ(FIRST), BARRIER(PLAIN), LEAVE, END})
PROGRAM(hdf5_close, {ENTER(H5Fclose), DELAY, BARRIER(PLAIN), SMALL_WRITE(FIRST), BARRIER(PLAIN), MPI_CLOSE, LEAVE, END})
PROGRAM(hdf5_dataset_create, {ENTER(H5Dcreate), DELAY, BARRIER(PLAIN), LEAVE, END})
PROGRAM(hdf5_dataset_open, {ENTER(H5Dopen), DELAY, SMALL_READ(METADATA), BARRIER(PLAIN), LEAVE, END})
PROGRAM(hdf5_dataset_close, LOCAL(H5Dclose))
PROGRAM(hdf5_write, {ENTER(H5Dwrite), DELAY, ALONE(MPI_File_write_at, pwrite, WRITE), LEAVE, END})
PROGRAM(hdf5_read, {ENTER(H5Dread), DELAY, ALONE(MPI_File_read_at, pread, READ), LEAVE, END})
PROGRAM(hdf5_write_all, {ENTER(H5Dwrite), DELAY, TOGETHER(MPI_File_write_at_all, pwrite, WRITE), LEAVE, END})
PROGRAM(hdf5_read_all, {ENTER(H5Dread), DELAY, TOGETHER(MPI_File_read_at_all, pread, READ), LEAVE, END})
PROGRAM(hdf5_flush, {ENTER(H5Fflush), DELAY, BARRIER(PLAIN), SMALL_WRITE(FIRST), CALLS(EVERYBODY, fsync, SYNC, FILE),
                     BARRIER(PLAIN), LEAVE, END})
PROGRAM(hdf5_metadata, {ENTER(H5Awrite), DELAY, BARRIER(PLAIN), SMALL_WRITE(METADATA), BARRIER(PLAIN), LEAVE, END})

PROGRAM(mpi_barrier, {ENTER(MPI_Barrier), BARRIER(PLAIN), LEAVE, END})
PROGRAM(mpi_allgather, {ENTER(MPI_Allgather), BARRIER(ALLGATHER), LEAVE, END})
PROGRAM(mpi_allreduce, {ENTER(MPI_Allreduce), BARRIER(ALLREDUCE), LEAVE, END})
PROGRAM(mpi_exchange, {ENTER(MPI_Waitall), {STEP_EXCHANGE, EVERYBODY, 0, 0, 0}, LEAVE, END})
PROGRAM(task_compute, {{STEP_COMPUTE, EVERYBODY, 0, 0, 0}, END})

const struct program barrier_program = {"mpi.barrier", mpi_barrier, 1};

#define ONE(layer, call) \
    { \
#layer "." #call, layer##_##call, 0 \
    }
#define ALL(layer, call) \
    { \
#layer "." #call, layer##_##call, 1 \
    }
static const struct program programs[] = {
    ONE(posix, open),          ONE(posix, close),       ONE(posix, lseek),        ONE(posix, read),
    ONE(posix, write),         ONE(posix, pread),       ONE(posix, pwrite),       ONE(posix, fsync),
    ONE(posix, fdatasync),     ONE(posix, stat),        ONE(posix, unlink),       ONE(posix, ftruncate),
    ONE(stdio, fopen),         ONE(stdio, fclose),      ONE(stdio, fseek),        ONE(stdio, fread),
    ONE(stdio, fwrite),        ONE(stdio, fflush),      ALL(mpiio, open),         ALL(mpiio, close),
    ONE(mpiio, read_at),       ONE(mpiio, write_at),    ALL(mpiio, read_at_all),  ALL(mpiio, write_at_all),
    ONE(mpiio, read),          ONE(mpiio, write),       ONE(mpiio, seek),         ALL(mpiio, sync),
    ALL(mpiio, set_size),      ALL(hdf5, create),       ALL(hdf5, open),          ALL(hdf5, close),
    ALL(hdf5, dataset_create), ALL(hdf5, dataset_open), ALL(hdf5, dataset_close), ONE(hdf5, write),
    ALL(hdf5, write_all),      ONE(hdf5, read),         ALL(hdf5, read_all),      ALL(hdf5, flush),
    ALL(hdf5, metadata),       ALL(mpi, barrier),       ALL(mpi, allgather),      ALL(mpi, allreduce),
    ONE(mpi, exchange),        ONE(task, compute),      ALL(mpiio, read_all),     ALL(mpiio, write_all),
    ONE(mpiio, open_alone),    ONE(mpiio, close_alone), ONE(mpiio, sync_alone),   ONE(mpiio, set_size_alone),
};

const struct program *program_named(const char *call)
{
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        if (strcmp(programs[i].call, call) == 0)
            return &programs[i];
    return NULL;
}
