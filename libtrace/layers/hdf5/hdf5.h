/* hdf5.h: helpers of the HDF5 wrappers: the library that a call belongs to, the object behind a hid, the bytes of a
 * selection. No header of HDF5 is needed.
 *
 * The program must not notice queries to HDF5. Each call clears HDF5's error stack, so queries come before the
 * program's call, which clears the stack anyway, or after a successful one; after a failed call the stack is restored.
 * A failing query would print a message. Therefore the type of a hid is queried first, which never fails; where that is
 * not enough, printing is disabled. */
#ifndef ENSIO_LAYERS_HDF5_HDF5_H
#define ENSIO_LAYERS_HDF5_HDF5_H

#include <core/recorder.h>
#include <layers/library_objects.h>

#include <stddef.h>

/* QUERY(result type, function, parameters): the name without its H5. */
#define ENSIO_HDF5_QUERIES(QUERY, NEWER_QUERY) \
    QUERY(int, Iget_type, (int64_t id)) \
    QUERY(ptrdiff_t, Fget_name, (int64_t id, char *name, size_t room)) \
    QUERY(int64_t, Aget_storage_size, (int64_t attribute)) \
    QUERY(int64_t, Dget_type, (int64_t set)) \
    QUERY(size_t, Tget_size, (int64_t type)) \
    QUERY(int, Tclose, (int64_t type)) \
    QUERY(int64_t, Dget_space, (int64_t set)) \
    QUERY(uint64_t, Dget_offset, (int64_t set)) \
    QUERY(uint64_t, Dget_storage_size, (int64_t set)) \
    QUERY(int64_t, Sget_select_npoints, (int64_t space)) \
    QUERY(int, Sget_select_type, (int64_t space)) \
    QUERY(int, Sget_select_bounds, (int64_t space, uint64_t * first, uint64_t * last)) \
    QUERY(int, Sget_simple_extent_dims, (int64_t space, uint64_t * sizes, uint64_t * most)) \
    QUERY(int, Sclose, (int64_t space)) \
    QUERY(int, Eauto_is_v2, (int64_t stack, unsigned *is_v2)) \
    QUERY(int, Eget_auto2, (int64_t stack, void **function, void **data)) \
    QUERY(int, Eset_auto2, (int64_t stack, void *function, void *data)) \
    QUERY(int64_t, Eget_current_stack, (void)) \
    QUERY(int, Eset_current_stack, (int64_t stack)) \
    NEWER_QUERY(int, Sis_regular_hyperslab, (int64_t space)) \
    NEWER_QUERY(int, Dget_chunk_storage_size, (int64_t set, const uint64_t *offset, uint64_t *bytes))

#define ENSIO_HDF5_MEMBER(type, name, parameters) type(*name) parameters;

/* An HDF5 library. A process may have several, and a hid is valid only in the library that created it. */
struct ensio_hdf5 {
    ENSIO_HDF5_QUERIES(ENSIO_HDF5_MEMBER, ENSIO_HDF5_MEMBER)
    uint32_t number; /* number of the library in the process */
};

/* HDF5 1.8, whose hids have 32 bits, is not recorded. This function exists since 1.10. */
static inline int ensio_hdf5_too_old(const struct ensio_hdf5 *hdf5)
{
    return !hdf5->Sis_regular_hyperslab;
}

/* Prints a warning, once. */
void ensio_hdf5_say_too_old(void);

/* Equals H5O_token_t, which is passed by value. */
struct ensio_hdf5_token {
    uint8_t data[16];
};

struct ensio_hdf5_amount {
    uint64_t bytes;
    int64_t offset;
};

/* The stack frame of the outermost HDF5 wrapper of this thread; calls below it are internal calls of the library. */
extern _Thread_local char *ensio_hdf5_frame;

/* The properties of a hid; queries HDF5 for unknown ones. These functions may change errno. */
struct ensio_object ensio_hdf5_object(const struct ensio_hdf5 *hdf5, int64_t id);

/* A file was opened by name, or an object in a file at `location`. Returns its properties. */
struct ensio_object ensio_hdf5_file_opened(const struct ensio_hdf5 *hdf5, int64_t id, const char *name);
struct ensio_object ensio_hdf5_opened(const struct ensio_hdf5 *hdf5, int64_t id, const struct ensio_object *location);

/* The bytes that a call moves or would have moved: the selected points times the size of an element in the file. For
 * variable-length data, that is the size of the references, as HDF5 reports it (8 bytes for a string, 16 for a
 * sequence). */
struct ensio_hdf5_amount ensio_hdf5_selected(const struct ensio_hdf5 *hdf5, struct ensio_object *set, int64_t memory,
                                             int64_t space, int succeeded);
struct ensio_hdf5_amount ensio_hdf5_all_selected(const struct ensio_hdf5 *hdf5, size_t count, const int64_t *sets,
                                                 const int64_t *memories, const int64_t *spaces, int succeeded);
struct ensio_hdf5_amount ensio_hdf5_chunk(const struct ensio_hdf5 *hdf5, int64_t set, const uint64_t *offset);
struct ensio_hdf5_amount ensio_hdf5_attribute(const struct ensio_hdf5 *hdf5, int64_t attribute);

#endif
