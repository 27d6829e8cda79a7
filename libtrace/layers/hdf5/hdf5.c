#include "hdf5.h"

#include <core/bounded_string.h>
#include <core/rawsys.h>
#include <core/settings.h>

#define LONGEST_NAME 4096
#define MOST_DIMENSIONS 32

/* Types of hids in HDF5. Attributes have one of two types, depending on the version; the other type is never an opened
 * object. */
enum { FILE_ID = 1, GROUP_ID = 2, SPACE_ID = 4, SET_ID = 5, ATTRIBUTE_OR_MAP_ID = 6, ATTRIBUTE_ID = 7 };

enum { LAST_SPECIAL_SPACE = 2 }; /* H5S_ALL 0, H5S_BLOCK 1, H5S_PLIST 2 are not hids */
enum { WHOLE_SPACE = 0, SELECTION_IN_LIST = 2 };
enum { SELECTED_HYPERSLABS = 2, SELECTED_ALL = 3 };
enum { DEFAULT_STACK = 0 };

_Thread_local char *ensio_hdf5_frame;

void ensio_hdf5_say_too_old(void)
{
    static int said;
    static const char message[] =
        "ensio: this program's HDF5 is older than 1.10, and the hdf5 layer does not record its calls; "
        "the calls on files under them are recorded (ENSIO_LAYERS=posix,stdio suppresses this message).\n";
    if (!__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED) && ensio_settings.rank <= 0)
        syscall(SYS_write, 2, message, sizeof message - 1);
}

struct ensio_object ensio_hdf5_object(const struct ensio_hdf5 *hdf5, int64_t id)
{
    struct ensio_object object = ensio_object_find(hdf5->number, id);
    if (ENSIO_LIKELY(object.generation))
        return object;
    object = ensio_object_unknown(hdf5->number, id);
    const int type = id > 0 ? hdf5->Iget_type(id) : -1;
    if (type != FILE_ID && type != GROUP_ID && type != SET_ID && type != ATTRIBUTE_ID && type != ATTRIBUTE_OR_MAP_ID)
        return object;
    object.is_file = type == FILE_ID;
    char name[LONGEST_NAME];
    if (hdf5->Fget_name(id, name, sizeof name) <= 0)
        return object;
    ensio_object_set_file(&object, name);
    ensio_object_keep(&object);
    return object;
}

struct ensio_object ensio_hdf5_file_opened(const struct ensio_hdf5 *hdf5, int64_t id, const char *name)
{
    struct ensio_object object = ensio_object_unknown(hdf5->number, id);
    object.is_file = 1;
    if (!name || !*name)
        return object;
    ensio_object_set_file(&object, name);
    if (id >= 0)
        ensio_object_keep(&object);
    return object;
}

/* Links and mounts lead into other files, so HDF5 is asked which file the object is in. */
struct ensio_object ensio_hdf5_opened(const struct ensio_hdf5 *hdf5, int64_t id, const struct ensio_object *location)
{
    char name[LONGEST_NAME];
    struct ensio_object object = ensio_object_unknown(hdf5->number, id);
    if (hdf5->Fget_name(id, name, sizeof name) > 0 && (!location->generation || ensio_hash(name) != location->name)) {
        ensio_object_set_file(&object, name);
    } else {
        object.file = location->file;
        object.name = location->name;
        object.left_out = location->left_out;
        object.generation = location->generation;
    }
    object.is_file = location->is_file && hdf5->Iget_type(id) == FILE_ID;
    if (object.generation)
        ensio_object_keep(&object);
    return object;
}

/* The number of elements before the first selected one; -1: unknown. */
static int64_t first_element(const struct ensio_hdf5 *hdf5, int64_t space)
{
    uint64_t first[MOST_DIMENSIONS], last[MOST_DIMENSIONS], sizes[MOST_DIMENSIONS], element = 0;
    const int type = hdf5->Sget_select_type(space);
    const int whole = type == SELECTED_ALL;
    if (!whole &&
        (type != SELECTED_HYPERSLABS || !hdf5->Sis_regular_hyperslab || hdf5->Sis_regular_hyperslab(space) <= 0))
        return -1;
    const int dimensions = hdf5->Sget_simple_extent_dims(space, sizes, NULL);
    if (whole || dimensions <= 0)
        return dimensions < 0 ? -1 : 0;
    if (hdf5->Sget_select_bounds(space, first, last) < 0)
        return -1;
    for (int i = 0; i < dimensions; i++)
        element = element * sizes[i] + first[i];
    return (int64_t)element;
}

/* The number of selected points. The arguments of a successful call are valid; those of a failed call are checked
 * first. */
static uint64_t points_of(const struct ensio_hdf5 *hdf5, int64_t space, int valid)
{
    const int64_t points = valid || hdf5->Iget_type(space) == SPACE_ID ? hdf5->Sget_select_npoints(space) : 0;
    return points > 0 ? (uint64_t)points : 0;
}

static uint64_t points_of_set(const struct ensio_hdf5 *hdf5, int64_t set)
{
    const int64_t space = hdf5->Dget_space(set);
    if (space < 0)
        return 0;
    const uint64_t points = points_of(hdf5, space, 1);
    hdf5->Sclose(space);
    return points;
}

static void ask_type(const struct ensio_hdf5 *hdf5, struct ensio_object *set)
{
    const int64_t type = hdf5->Dget_type(set->id);
    if (type < 0)
        return;
    set->type_bytes = hdf5->Tget_size(type);
    hdf5->Tclose(type);
}

/* The offset of a contiguous dataset in its file. A contiguous dataset has none before its first write, and other
 * datasets never have one; HDF5 may then fail and print. References to variable-length data have a different size in
 * the file, so their positions are unknown. */
static int64_t asked_offset(const struct ensio_hdf5 *hdf5, const struct ensio_object *set)
{
    unsigned is_v2 = 0;
    void *print, *data;
    if (hdf5->Eauto_is_v2(DEFAULT_STACK, &is_v2) < 0 || !is_v2 || hdf5->Eget_auto2(DEFAULT_STACK, &print, &data) < 0)
        return ENSIO_OBJECT_NO_OFFSET;
    hdf5->Eset_auto2(DEFAULT_STACK, NULL, NULL);
    const int64_t offset = (int64_t)hdf5->Dget_offset(set->id);
    const int as_large =
        offset >= 0 && hdf5->Dget_storage_size(set->id) == points_of_set(hdf5, set->id) * set->type_bytes;
    hdf5->Eset_auto2(DEFAULT_STACK, print, data);
    return as_large ? offset : ENSIO_OBJECT_NO_OFFSET;
}

struct ensio_hdf5_amount ensio_hdf5_selected(const struct ensio_hdf5 *hdf5, struct ensio_object *set, int64_t memory,
                                             int64_t space, int succeeded)
{
    struct ensio_hdf5_amount amount = {.bytes = 0, .offset = -1};
    const struct ensio_object before = *set;
    if (!succeeded && hdf5->Iget_type(set->id) != SET_ID)
        return amount;
    if (!set->type_bytes)
        ask_type(hdf5, set);
    const uint64_t points = space > LAST_SPECIAL_SPACE    ? points_of(hdf5, space, succeeded)
                            : memory > LAST_SPECIAL_SPACE ? points_of(hdf5, memory, succeeded)
                            : space == WHOLE_SPACE        ? points_of_set(hdf5, set->id)
                                                          : 0;
    if (__builtin_mul_overflow(points, set->type_bytes, &amount.bytes))
        amount.bytes = INT64_MAX;
    if (succeeded && points && set->offset < 0 && set->offset != ENSIO_OBJECT_NO_OFFSET)
        set->offset = asked_offset(hdf5, set);
    if (succeeded && points && set->offset >= 0 && space != SELECTION_IN_LIST) {
        const int64_t element = space > LAST_SPECIAL_SPACE ? first_element(hdf5, space) : 0;
        amount.offset = element < 0 ? -1 : set->offset + element * (int64_t)set->type_bytes;
    }
    if (set->generation && (set->type_bytes != before.type_bytes || set->offset != before.offset))
        ensio_object_keep(set);
    return amount;
}

struct ensio_hdf5_amount ensio_hdf5_all_selected(const struct ensio_hdf5 *hdf5, size_t count, const int64_t *sets,
                                                 const int64_t *memories, const int64_t *spaces, int succeeded)
{
    struct ensio_hdf5_amount all = {.bytes = 0, .offset = -1};
    for (size_t i = 0; i < count && sets && memories && spaces; i++) {
        struct ensio_object set = ensio_hdf5_object(hdf5, sets[i]);
        const struct ensio_hdf5_amount one = ensio_hdf5_selected(hdf5, &set, memories[i], spaces[i], succeeded);
        all.bytes += one.bytes;
        all.offset = count == 1 ? one.offset : -1;
    }
    return all;
}

struct ensio_hdf5_amount ensio_hdf5_chunk(const struct ensio_hdf5 *hdf5, int64_t set, const uint64_t *offset)
{
    struct ensio_hdf5_amount amount = {.bytes = 0, .offset = -1};
    if (hdf5->Dget_chunk_storage_size && hdf5->Iget_type(set) == SET_ID)
        hdf5->Dget_chunk_storage_size(set, offset, &amount.bytes);
    return amount;
}

struct ensio_hdf5_amount ensio_hdf5_attribute(const struct ensio_hdf5 *hdf5, int64_t attribute)
{
    const int type = hdf5->Iget_type(attribute);
    const int64_t bytes = type == ATTRIBUTE_ID || type == ATTRIBUTE_OR_MAP_ID ? hdf5->Aget_storage_size(attribute) : 0;
    return (struct ensio_hdf5_amount){.bytes = bytes > 0 ? (uint64_t)bytes : 0, .offset = -1};
}
