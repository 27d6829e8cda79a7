/* hdf5.h: what a line of the table of HDF5 calls cannot say: which library is meant, what a hid stands for, how many
 * bytes a selection is. No header of HDF5 is needed.
 *
 * The questions that are put to HDF5 must not be noticed. Each call of it clears its stack of errors, so they come
 * before the program's call (which clears it anyway) or after one that succeeded; after one that failed the stack is
 * put back. One that fails would print; so a hid's type is asked first, which never fails, and where that is not
 * enough, printing is off.
 */
#ifndef ENSIO_LAYERS_HDF5_HDF5_H
#define ENSIO_LAYERS_HDF5_HDF5_H

#include <core/recorder.h>

#include <stddef.h>

/* QUESTION(result type, function, parameters), the name without its H5. */
#define ENSIO_HDF5_QUESTIONS(QUESTION, NEWER_QUESTION) \
    QUESTION(int, Iget_type, (int64_t id)) \
    QUESTION(ptrdiff_t, Fget_name, (int64_t id, char *name, size_t room)) \
    QUESTION(int64_t, Aget_storage_size, (int64_t attribute)) \
    QUESTION(int64_t, Dget_type, (int64_t set)) \
    QUESTION(size_t, Tget_size, (int64_t type)) \
    QUESTION(int, Tclose, (int64_t type)) \
    QUESTION(int64_t, Dget_space, (int64_t set)) \
    QUESTION(uint64_t, Dget_offset, (int64_t set)) \
    QUESTION(uint64_t, Dget_storage_size, (int64_t set)) \
    QUESTION(int64_t, Sget_select_npoints, (int64_t space)) \
    QUESTION(int, Sget_select_type, (int64_t space)) \
    QUESTION(int, Sget_select_bounds, (int64_t space, uint64_t * first, uint64_t * last)) \
    QUESTION(int, Sget_simple_extent_dims, (int64_t space, uint64_t * sizes, uint64_t * most)) \
    QUESTION(int, Sclose, (int64_t space)) \
    QUESTION(int, Eauto_is_v2, (int64_t stack, unsigned *is_v2)) \
    QUESTION(int, Eget_auto2, (int64_t stack, void **function, void **data)) \
    QUESTION(int, Eset_auto2, (int64_t stack, void *function, void *data)) \
    QUESTION(int64_t, Eget_current_stack, (void)) \
    QUESTION(int, Eset_current_stack, (int64_t stack)) \
    NEWER_QUESTION(int, Sis_regular_hyperslab, (int64_t space)) \
    NEWER_QUESTION(int, Dget_chunk_storage_size, (int64_t set, const uint64_t *offset, uint64_t *bytes))

#define ENSIO_HDF5_MEMBER(type, name, parameters) type(*name) parameters;

/* One HDF5 library: there may be several in a process, and a hid means something to the one that gave it only. */
struct ensio_hdf5 {
    ENSIO_HDF5_QUESTIONS(ENSIO_HDF5_MEMBER, ENSIO_HDF5_MEMBER)
    uint32_t number; /* of the library, in the process */
};

/* HDF5 1.8, whose hids are half as wide, is not recorded. The function came with those of today, in 1.10. */
static inline int ensio_hdf5_too_old(const struct ensio_hdf5 *hdf5)
{
    return !hdf5->Sis_regular_hyperslab;
}

/* Says so, once. */
void ensio_hdf5_say_too_old(void);

/* What is known of a hid. */
struct ensio_hdf5_object {
    int64_t id;
    uint32_t library;
    uint32_t file;       /* its number in events */
    uint64_t name;       /* hash of the name under which HDF5 opened the file */
    uint64_t type_bytes; /* of an element of a dataset; 0: not asked yet */
    int64_t offset;      /* of a dataset's first byte in the file */
    uint32_t generation; /* of the process whose spool has the file; 0: nothing is known */
    uint16_t left_out;   /* the file is one that is left out */
    uint16_t is_file;
};
#define ENSIO_HDF5_OFFSET_NOT_ASKED INT64_MIN
#define ENSIO_HDF5_NO_OFFSET (-1)

/* As H5O_token_t, which is passed by value. */
struct ensio_hdf5_token {
    uint8_t data[16];
};

struct ensio_hdf5_amount {
    uint64_t bytes;
    int64_t offset;
};

/* Stores a call on an object, unless its file is left out. */
static inline void ensio_hdf5_store(struct ensio_thread *thread, uint16_t call, const struct ensio_hdf5_object *object,
                                    struct ensio_hdf5_amount amount, int64_t moved, uint64_t start, uint64_t duration)
{
    if (object->left_out)
        thread->excluded_calls++;
    else
        ensio_store(thread, call, object->file, amount.offset, amount.bytes, moved, start, duration);
}

/* The stack frame of the wrapper of the HDF5 call that this thread is in; calls below it are the library's own. */
extern _Thread_local char *ensio_hdf5_frame;

/* What is known of a hid; asks HDF5 where nothing is. These may change errno. */
struct ensio_hdf5_object ensio_hdf5_object(const struct ensio_hdf5 *hdf5, int64_t id);

/* A file was opened under a name, or something in a file: `location` is where it was opened from. Returns what is
 * known. */
struct ensio_hdf5_object ensio_hdf5_file_opened(const struct ensio_hdf5 *hdf5, int64_t id, const char *name);
struct ensio_hdf5_object ensio_hdf5_opened(const struct ensio_hdf5 *hdf5, int64_t id,
                                           const struct ensio_hdf5_object *location);

/* The table of what is known (hdf5_objects.c). Finding returns generation 0 where there is nothing. */
struct ensio_hdf5_object ensio_hdf5_find(const struct ensio_hdf5 *hdf5, int64_t id);
void ensio_hdf5_keep(const struct ensio_hdf5_object *object);
void ensio_hdf5_forget(const struct ensio_hdf5 *hdf5, int64_t id);
void ensio_hdf5_forget_all(const struct ensio_hdf5 *hdf5);

/* How much a call moves, or would have moved: the points of a selection, each as large as an element in the file. Of
 * data of variable length that is the size of the references to it, as HDF5 gives it (8 bytes for a string, 16 for a
 * sequence). */
struct ensio_hdf5_amount ensio_hdf5_selected(const struct ensio_hdf5 *hdf5, struct ensio_hdf5_object *set,
                                             int64_t memory, int64_t space, int succeeded);
struct ensio_hdf5_amount ensio_hdf5_all_selected(const struct ensio_hdf5 *hdf5, size_t count, const int64_t *sets,
                                                 const int64_t *memories, const int64_t *spaces, int succeeded);
struct ensio_hdf5_amount ensio_hdf5_chunk(const struct ensio_hdf5 *hdf5, int64_t set, const uint64_t *offset);
struct ensio_hdf5_amount ensio_hdf5_attribute(const struct ensio_hdf5 *hdf5, int64_t attribute);

#endif
