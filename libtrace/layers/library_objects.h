/* library_objects.h: what is known of the objects of I/O libraries (hids of HDF5, files of NetCDF and PnetCDF), by
 * library and id. */
#ifndef ENSIO_LAYERS_LIBRARY_OBJECTS_H
#define ENSIO_LAYERS_LIBRARY_OBJECTS_H

#include <core/recorder.h>

/* Libraries that a program is linked with. Loaded ones get further numbers (loaded_libraries.h). */
enum { ENSIO_LINKED_HDF5 = 0, ENSIO_LINKED_NETCDF, ENSIO_LINKED_PNETCDF, ENSIO_LINKED_LIBRARIES };

struct ensio_object {
    int64_t id;
    uint32_t library;
    uint32_t file;       /* file number in events */
    uint64_t name;       /* hash of the name that the library opened the file under */
    uint64_t type_bytes; /* size of an element of a dataset; 0: not queried yet */
    int64_t offset;      /* offset of a dataset's first byte in the file */
    uint32_t generation; /* generation of the process whose spool holds the file; 0: nothing is known */
    uint16_t left_out;   /* the file is excluded */
    uint8_t is_file;
    uint8_t access; /* flags ENSIO_OPENED_TO_... of the call that is stored */
};
#define ENSIO_OBJECT_OFFSET_NOT_ASKED INT64_MIN
#define ENSIO_OBJECT_NO_OFFSET (-1)

/* An object of which nothing is known. */
struct ensio_object ensio_object_unknown(uint32_t library, int64_t id);

/* Sets the file of an object. May change errno. */
void ensio_object_set_file(struct ensio_object *object, const char *name);

/* The table. A search returns generation 0 for an unknown object. */
struct ensio_object ensio_object_find(uint32_t library, int64_t id);
void ensio_object_keep(const struct ensio_object *object);
void ensio_object_forget(uint32_t library, int64_t id);
void ensio_object_forget_all(uint32_t library);

/* Stores a call on an object, unless its file is excluded. `moved` is a number of bytes, or minus an errno. */
static inline void ensio_object_store(struct ensio_thread *thread, uint16_t call, const struct ensio_object *object,
                                      int64_t offset, uint64_t requested, int64_t moved, uint64_t start,
                                      uint64_t duration)
{
    if (object->left_out)
        thread->excluded_calls++;
    else
        ensio_store_with(object->access, thread, call, object->file, offset, requested, moved, start, duration);
}

#endif
