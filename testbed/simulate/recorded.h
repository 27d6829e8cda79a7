/* recorded.h: the calls that a recorder would see of a simulated program: name, layer and op, as in libtrace/calls. */
#ifndef ENSIO_SIMULATE_RECORDED_H
#define ENSIO_SIMULATE_RECORDED_H

#define RECORDED_CALLS(CALL) \
    CALL(open, posix, open) \
    CALL(close, posix, close) \
    CALL(lseek, posix, seek) \
    CALL(read, posix, read) \
    CALL(write, posix, write) \
    CALL(pread, posix, read) \
    CALL(pwrite, posix, write) \
    CALL(fsync, posix, sync) \
    CALL(fdatasync, posix, sync) \
    CALL(stat, posix, meta) \
    CALL(unlink, posix, meta) \
    CALL(ftruncate, posix, meta) \
    CALL(fopen, stdio, open) \
    CALL(fclose, stdio, close) \
    CALL(fseek, stdio, seek) \
    CALL(fread, stdio, read) \
    CALL(fwrite, stdio, write) \
    CALL(fflush, stdio, sync) \
    CALL(MPI_File_open, mpiio, open) \
    CALL(MPI_File_close, mpiio, close) \
    CALL(MPI_File_read_at, mpiio, read) \
    CALL(MPI_File_write_at, mpiio, write) \
    CALL(MPI_File_read_at_all, mpiio, read) \
    CALL(MPI_File_write_at_all, mpiio, write) \
    CALL(MPI_File_read_all, mpiio, read) \
    CALL(MPI_File_write_all, mpiio, write) \
    CALL(MPI_File_read, mpiio, read) \
    CALL(MPI_File_write, mpiio, write) \
    CALL(MPI_File_seek, mpiio, seek) \
    CALL(MPI_File_sync, mpiio, sync) \
    CALL(MPI_File_set_size, mpiio, meta) \
    CALL(MPI_Barrier, mpisync, wait) \
    CALL(MPI_Allgather, mpisync, wait) \
    CALL(MPI_Allreduce, mpisync, wait) \
    CALL(MPI_Waitall, mpisync, wait) \
    CALL(H5Fcreate, hdf5, open) \
    CALL(H5Fopen, hdf5, open) \
    CALL(H5Fclose, hdf5, close) \
    CALL(H5Dcreate, hdf5, open) \
    CALL(H5Dopen, hdf5, open) \
    CALL(H5Dclose, hdf5, close) \
    CALL(H5Dwrite, hdf5, write) \
    CALL(H5Dread, hdf5, read) \
    CALL(H5Fflush, hdf5, sync) \
    CALL(H5Awrite, hdf5, write)

enum recorded_call {
    NOT_RECORDED,
#define CALL(name, layer, op) RECORDED_##name,
    RECORDED_CALLS(CALL)
#undef CALL
        RECORDED_COUNT
};

/* The same as ensembles.model.events.OPS. */
enum recorded_op { OP_read, OP_write, OP_open, OP_close, OP_seek, OP_sync, OP_meta, OP_wait };

struct recorded_kind {
    const char *name;
    const char *layer;
    const char *op_name;
    enum recorded_op op;
};

/* Indexed by enum recorded_call. */
extern const struct recorded_kind recorded_kinds[RECORDED_COUNT];

#endif
