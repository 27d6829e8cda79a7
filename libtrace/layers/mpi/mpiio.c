/* mpiio.c: the state of open MPI-IO files. The wrappers are in mpiio_wrappers.c and mpiio_fortran.c. */
#include "mpiio.h"
#include "driver_prefix.h"

#include "query.h"

#include <core/globs.h>
#include <core/lock.h>
#include <core/memory.h>
#include <files/descriptors.h>
#include <files/folders.h>
#include <files/paths.h>
#include <layers/program_memory.h>
#include <threads/thread.h>

#include <fcntl.h>
#include <stddef.h>

ENSIO_PMPI_DECLARE(File_get_byte_offset, (uintptr_t file, int64_t offset, int64_t *bytes))
ENSIO_PMPI_DECLARE(File_get_position, (uintptr_t file, int64_t *offset))
ENSIO_PMPI_DECLARE(Type_get_extent, (uintptr_t type, intptr_t *from, intptr_t *bytes))

#define MODE_SEQUENTIAL 256
#define MODE_WRONLY 4
#define MODE_RDWR 8
#define DISPLACEMENT_CURRENT (-54278278)

/* Handles are looked up without the lock: a slot's handle is stored last, and a closed file leaves a gap that does not
 * end a search. */
#define SLOTS 2048
#define GAP ((uintptr_t)-1)

struct open_file {
    uintptr_t handle;                  /* 0: the slot was never used */
    int64_t displacement, etype_bytes; /* of a view without holes */
    uint32_t file;
    uint8_t left_out;
    uint8_t plain;      /* the view has no holes: bytes = displacement + offset * etype_bytes */
    uint8_t sequential; /* positions cannot be queried */
    uint8_t split;      /* a split collective is pending */
    struct ensio_io begun;
};
static void *files; /* SLOTS open files; NULL until the first one */

static unsigned first_slot(uintptr_t handle)
{
    return (unsigned)(handle >> 4 ^ handle >> 14) % SLOTS;
}

static struct open_file *find(uintptr_t handle)
{
    struct open_file *const slots = __atomic_load_n(&files, __ATOMIC_ACQUIRE);
    for (unsigned i = 0, at = first_slot(handle); slots && handle && i < SLOTS; i++, at = (at + 1) % SLOTS) {
        const uintptr_t found = __atomic_load_n(&slots[at].handle, __ATOMIC_ACQUIRE);
        if (found == handle)
            return &slots[at];
        if (!found)
            return NULL;
    }
    return NULL;
}

/* If more files are open than there are slots, or memory is short, calls on further files are recorded without their
 * file. */
static void add(struct open_file new)
{
    struct open_file *const slots = ensio_table(&files, SLOTS * sizeof *slots);
    for (unsigned i = 0, at = first_slot(new.handle); slots && i < SLOTS; i++, at = (at + 1) % SLOTS) {
        struct open_file *slot = &slots[at];
        if (slot->handle && slot->handle != GAP && slot->handle != new.handle)
            continue;
        const uintptr_t handle = new.handle;
        new.handle = slot->handle ? GAP : 0;
        *slot = new;
        __atomic_store_n(&slot->handle, handle, __ATOMIC_RELEASE);
        return;
    }
}

void ensio_mpiio_forget(uintptr_t handle)
{
    struct open_file *file = find(handle);
    if (!file)
        return;
    if (file->split)
        ensio_io_over(&file->begun);
    __atomic_store_n(&file->handle, GAP, __ATOMIC_RELEASE);
}

uint32_t ensio_mpiio_file(uintptr_t handle, int *left_out)
{
    const struct open_file *file = find(handle);
    *left_out = file && file->left_out;
    return file ? file->file : 0;
}

/* Queries are made only for files that MPI has opened, because an error might end the program. */
static int64_t byte_offset(const struct open_file *file, enum ensio_mpiio_where where, int64_t offset)
{
    int64_t bytes = -1;
    if (!file || where == ENSIO_AT_SHARED || file->sequential)
        return -1;
    if (where == ENSIO_AT_POSITION && ENSIO_PMPI(File_get_position)(file->handle, &offset) != 0)
        return -1;
    if (offset < 0)
        return -1;
    if (file->plain)
        return file->displacement + offset * file->etype_bytes;
    return ENSIO_PMPI(File_get_byte_offset)(file->handle, offset, &bytes) == 0 ? bytes : -1;
}

int64_t ensio_mpiio_position(uintptr_t handle)
{
    return byte_offset(find(handle), ENSIO_AT_POSITION, 0);
}

int ensio_mpiio_begin(struct ensio_io *io, uintptr_t handle, enum ensio_mpiio_where where, int64_t offset,
                      int64_t count, uintptr_t type)
{
    const struct open_file *file = find(handle);
    if (file && file->left_out)
        return 0;
    io->file = file ? file->file : 0;
    io->requested = count > 0 ? (uint64_t)(count * ensio_mpi_type_bytes(type)) : 0;
    io->offset = byte_offset(file, where, offset);
    return 1;
}

void ensio_mpiio_end(struct ensio_thread *thread, const struct ensio_io *io, int result, const char *status,
                     uint64_t duration)
{
    const int64_t moved = ensio_mpi_moved(result, status, 0);
    ensio_store(thread, io->call, io->file, io->offset, io->requested, moved, io->start, duration);
}

void ensio_mpiio_split_begun(struct ensio_thread *thread, uintptr_t handle, struct ensio_io *io, int result,
                             uint64_t duration)
{
    struct open_file *file = find(handle);
    if (result == 0 && file) {
        if (!file->split)
            ensio_io_starting(io);
        ensio_io_posted(thread, io, duration);
        file->begun = *io;
        file->split = 1;
        return;
    }
    const int64_t moved = result ? -(int64_t)ensio_mpi_errno(result) : (int64_t)io->requested;
    ensio_io_blocks(thread->depth, duration);
    ensio_store(thread, io->call, io->file, io->offset, io->requested, moved, io->start, duration);
}

void ensio_mpiio_split_ended(struct ensio_thread *thread, uint16_t call, uintptr_t handle, uint8_t carries, int result,
                             const char *status, uint64_t start, uint64_t duration)
{
    struct open_file *file = find(handle);
    if (!file || !file->split || file->begun.carries != carries)
        return;
    struct ensio_io *const io = &file->begun;
    file->split = 0;
    ensio_io_over(io);
    ensio_io_blocks(thread->depth, duration);
    io->flying.completed = start + duration;
    io->flying.wait_start = start;
    io->flying.wait = duration;
    io->flying.wait_call = call;
    io->flying.wait_thread = ensio_number_of_thread(thread);
    ensio_io_store(thread, io, ensio_mpi_moved(result, status, 0), 0);
    ensio_store(thread, call, io->file, -1, 0, result ? -(int64_t)ensio_mpi_errno(result) : 0, start, duration);
}

uint64_t ensio_mpiio_viewed(uintptr_t handle, int64_t displacement, uintptr_t etype, uintptr_t filetype, int result)
{
    struct open_file *file = find(handle);
    intptr_t from = 0, extent = 0;
    if (result != 0 || !file || ENSIO_PMPI(Type_get_extent)(filetype, &from, &extent) != 0)
        return 0;
    file->etype_bytes = ensio_mpi_type_bytes(etype);
    file->displacement = displacement;
    file->plain = from == 0 && extent == ensio_mpi_type_bytes(filetype) && displacement != DISPLACEMENT_CURRENT;
    return extent > 0 ? (uint64_t)extent : 0;
}

/* The number of the file at `path`. 0 with `left_out` set: its calls are excluded; 0: the call failed without having
 * read the path. */
static uint32_t number_of(const char *path, int result, int *left_out)
{
    const int64_t length = ensio_path_length(path, ENSIO_LONGEST_PATH, result == 0);
    *left_out = 0;
    if (length < 0)
        return 0;
    const char *const end = path + length;
    path = ensio_without_driver(path);
    struct ensio_held held = ensio_lock();
    const char *absolute = ensio_absolute_path(AT_FDCWD, path, (uint32_t)(end - path), NULL);
    *left_out = ensio_excluded(absolute);
    const uint32_t number = *left_out ? 0 : ensio_file_number(absolute);
    ensio_unlock(held);
    return number;
}

static void store_on_path(struct ensio_thread *thread, uint16_t call, uint8_t access, uint32_t file, int left_out,
                          int result, uint64_t start, uint64_t duration)
{
    if (left_out)
        thread->excluded_calls++;
    else
        ensio_store_with(access, thread, call, file, -1, 0, -(int64_t)ensio_mpi_errno(result), start, duration);
}

enum {
#define CALL(number, call, op) CALL_##call = (number),
#include <calls/mpiio.def>
};

void ensio_mpiio_opened(struct ensio_thread *thread, uintptr_t comm, const char *path, int mode, uintptr_t asked,
                        uintptr_t handle, int result, uint64_t start, uint64_t duration)
{
    int left_out;
    const uint32_t file = number_of(path, result, &left_out);
    if (result == 0) {
        struct ensio_held held = ensio_lock();
        add((struct open_file){.handle = handle,
                               .file = file,
                               .left_out = (uint8_t)left_out,
                               .plain = 1,
                               .etype_bytes = 1,
                               .sequential = (mode & MODE_SEQUENTIAL) != 0});
        ensio_unlock(held);
        if (!left_out)
            ensio_mpiio_hints(file, comm, asked, handle);
    }
    const int access = mode & MODE_RDWR     ? ENSIO_OPENED_TO_READ | ENSIO_OPENED_TO_WRITE
                       : mode & MODE_WRONLY ? ENSIO_OPENED_TO_WRITE
                                            : ENSIO_OPENED_TO_READ;
    store_on_path(thread, CALL_MPI_File_open, (uint8_t)access, file, left_out, result, start, duration);
}

void ensio_mpiio_deleted(struct ensio_thread *thread, const char *path, int result, uint64_t start, uint64_t duration)
{
    int left_out;
    const uint32_t file = number_of(path, result, &left_out);
    store_on_path(thread, CALL_MPI_File_delete, 0, file, left_out, result, start, duration);
}
