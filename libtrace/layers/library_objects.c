/* library_objects.c: the table of objects. Libraries can be queried again, so the table has a fixed size and drops what
 * does not fit. It is read without a lock: a slot that is being written, or was written during the read, counts as
 * empty. A writer skips a slot that another thread is writing. */
#include "library_objects.h"

#include <core/bounded_string.h>
#include <core/globs.h>
#include <core/lock.h>
#include <core/memory.h>
#include <core/recorder.h>
#include <core/settings.h>
#include <files/folders.h>
#include <files/paths.h>

#include <fcntl.h>
#include <string.h>

#define SETS 1024
#define WAYS 4
#define WORDS (sizeof(struct ensio_object) / sizeof(uint64_t))

struct slot {
    uint64_t version; /* odd while it is written */
    uint64_t words[WORDS];
};
static void *slots; /* SETS times WAYS of them; NULL until the first object */
_Static_assert(WORDS * sizeof(uint64_t) == sizeof(struct ensio_object), "objects are kept as whole words");

static struct slot *set_of(struct slot *of, int64_t id, uint32_t library)
{
    return of + ((uint64_t)id ^ (uint64_t)id >> 56 ^ (uint64_t)library << 7) % SETS * WAYS;
}

static int read_slot(const struct slot *slot, struct ensio_object *object)
{
    uint64_t words[WORDS] = {0};
    const uint64_t version = __atomic_load_n(&slot->version, __ATOMIC_ACQUIRE);
    for (size_t i = 0; i < WORDS; i++) /* each before the second load of the version */
        words[i] = __atomic_load_n(&slot->words[i], __ATOMIC_ACQUIRE);
    memcpy(object, words, sizeof words);
    return object->generation && !(version & 1) && __atomic_load_n(&slot->version, __ATOMIC_RELAXED) == version;
}

static void write_slot(struct slot *slot, const struct ensio_object *object)
{
    uint64_t words[WORDS], version = __atomic_load_n(&slot->version, __ATOMIC_RELAXED);
    memcpy(words, object, sizeof words);
    if (version & 1 ||
        !__atomic_compare_exchange_n(&slot->version, &version, version + 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return;
    for (size_t i = 0; i < WORDS; i++) /* each after the version has become odd */
        __atomic_store_n(&slot->words[i], words[i], __ATOMIC_RELEASE);
    __atomic_store_n(&slot->version, version + 2, __ATOMIC_RELEASE);
}

static struct slot *slot_of(int64_t id, uint32_t library, struct ensio_object *object)
{
    struct slot *const all = __atomic_load_n(&slots, __ATOMIC_ACQUIRE), *const set =
                                                                            all ? set_of(all, id, library) : NULL;
    for (int way = 0; set && way < WAYS; way++)
        if (read_slot(&set[way], object) && object->id == id && object->library == library)
            return &set[way];
    return NULL;
}

struct ensio_object ensio_object_unknown(uint32_t library, int64_t id)
{
    return (struct ensio_object){.id = id, .library = library, .offset = ENSIO_OBJECT_OFFSET_NOT_ASKED};
}

void ensio_object_set_file(struct ensio_object *object, const char *name)
{
    struct ensio_held held = ensio_lock();
    const char *absolute = ensio_absolute_path(AT_FDCWD, name, (uint32_t)strnlen(name, ENSIO_PATH_ROOM), NULL);
    object->left_out = (uint16_t)ensio_excluded(absolute);
    object->file = object->left_out ? 0 : ensio_file_number(absolute);
    ensio_unlock(held);
    object->name = ensio_hash(name);
    object->generation = ensio_process->generation;
}

/* A forked child keeps its parent's file numbers. */
static void store_file(struct ensio_object *object)
{
    struct ensio_held held = ensio_lock();
    const int stored = object->left_out || (ensio_ensure_spool() == 0 && ensio_file_store(object->file) == 0);
    ensio_unlock(held);
    if (!stored)
        object->file = 0;
    object->generation = ensio_process->generation;
    ensio_object_keep(object);
}

struct ensio_object ensio_object_find(uint32_t library, int64_t id)
{
    struct ensio_object object;
    if (!slot_of(id, library, &object))
        return ensio_object_unknown(library, id);
    if (ENSIO_UNLIKELY(object.generation != ensio_process->generation))
        store_file(&object);
    return object;
}

/* Files are evicted last, because their names cannot be made absolute later. */
void ensio_object_keep(const struct ensio_object *object)
{
    struct ensio_object other;
    struct slot *const all = ensio_table(&slots, SETS * WAYS * sizeof *all);
    if (!all)
        return;
    struct slot *set = set_of(all, object->id, object->library), *slot = slot_of(object->id, object->library, &other);
    for (int way = 0; way < WAYS && !slot; way++)
        if (!read_slot(&set[way], &other))
            slot = &set[way];
    const unsigned first = (unsigned)object->id / SETS; /* a different start for every object that comes to this set */
    for (unsigned way = 0; way < WAYS && !slot; way++)
        if (read_slot(&set[(first + way) % WAYS], &other) && !other.is_file)
            slot = &set[(first + way) % WAYS];
    write_slot(slot ? slot : &set[first % WAYS], object);
}

void ensio_object_forget(uint32_t library, int64_t id)
{
    struct ensio_object object;
    struct slot *slot = slot_of(id, library, &object);
    const struct ensio_object nothing = {.generation = 0};
    if (slot)
        write_slot(slot, &nothing);
}

void ensio_object_forget_all(uint32_t library)
{
    const struct ensio_object nothing = {.generation = 0};
    struct ensio_object object;
    struct slot *const all = __atomic_load_n(&slots, __ATOMIC_ACQUIRE);
    for (unsigned at = 0; all && at < SETS * WAYS; at++)
        if (read_slot(&all[at], &object) && object.library == library)
            write_slot(&all[at], &nothing);
}
