/* mpiio.h: the state of each open file of MPI-IO. */
#ifndef ENSIO_LAYERS_MPI_MPIIO_H
#define ENSIO_LAYERS_MPI_MPIIO_H

#include "abi.h"
#include "requests.h"

#include <core/recorder.h>

/* The kind of offset of a transfer. */
enum ensio_mpiio_where {
    ENSIO_AT_POSITION, /* at the task's own position in the file */
    ENSIO_AT_OFFSET,   /* at an offset of the view */
    ENSIO_AT_SHARED    /* at the position that all tasks share */
};

/* Prepares the event of a transfer. Returns 0 if the file's calls are excluded. */
int ensio_mpiio_begin(struct ensio_io *io, uintptr_t file, enum ensio_mpiio_where where, int64_t offset, int64_t count,
                      uintptr_t type);

/* Stores the event of a transfer. */
void ensio_mpiio_end(struct ensio_thread *thread, const struct ensio_io *io, int result, const char *status,
                     uint64_t duration);

/* A split collective begins or ends; at its end its event is stored, and that of the call which ends it. */
void ensio_mpiio_split_begun(struct ensio_thread *thread, uintptr_t file, struct ensio_io *io, int result,
                             uint64_t duration);
void ensio_mpiio_split_ended(struct ensio_thread *thread, uint16_t call, uintptr_t file, uint8_t carries, int result,
                             const char *status, uint64_t start, uint64_t duration);

/* After an open or a delete: stores the event. `asked` is the info object of the program. */
void ensio_mpiio_opened(struct ensio_thread *thread, uintptr_t comm, const char *path, int mode, uintptr_t asked,
                        uintptr_t file, int result, uint64_t start, uint64_t duration);
void ensio_mpiio_deleted(struct ensio_thread *thread, const char *path, int result, uint64_t start, uint64_t duration);

/* The number of an open file. 0 with `left_out` set: its calls are excluded. */
uint32_t ensio_mpiio_file(uintptr_t file, int *left_out);

/* Before MPI_File_close: forgets the file. */
void ensio_mpiio_forget(uintptr_t file);

/* After MPI_File_set_view: notes the view, and returns the extent of the file type in bytes. */
uint64_t ensio_mpiio_viewed(uintptr_t file, int64_t displacement, uintptr_t etype, uintptr_t filetype, int result);

/* After MPI_File_seek: the position in bytes from the start of the file; -1: unknown. */
int64_t ensio_mpiio_position(uintptr_t file);

/* Stores the hints of a file, once. */
void ensio_mpiio_hints(uint32_t file, uintptr_t comm, uintptr_t asked, uintptr_t handle);

#endif
