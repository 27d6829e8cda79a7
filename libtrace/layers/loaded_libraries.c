/* loaded_libraries.c: finds and caches the library of a caller.
 *
 * Nothing here takes the recorder's lock, because looking up symbols takes the dynamic linker's lock, whose holder may
 * be waiting for ours. Entries never change, so readers need no lock. */
#include "loaded_libraries.h"

#include "library_objects.h"
#include "wrapping.h"

#include <core/rawsys.h>
#include <core/recorder.h>

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>

#define ROOM_BYTES 16384

/* A loaded object. Two objects that are loaded one after the other are mistaken for each other only if they are the
 * same file at the same address, which does no harm. */
struct object {
    const void *start, *end;
    const struct link_map *map;
};

struct ensio_loaded {
    struct object object;
    const void *probe;
    const struct ensio_loaded *next;
    _Alignas(16) char part[];
};

struct ensio_caller {
    struct object object;
    const struct ensio_loaded *library;
    const struct ensio_caller *next;
};

/* Permanent memory, or NULL. For the usual process it is static, so that its calls cannot fail here. */
static void *room_for(size_t bytes)
{
    static _Alignas(16) char at_hand[ROOM_BYTES];
    static size_t used;
    bytes = (bytes + 15) & ~(size_t)15;
    const size_t at = __atomic_fetch_add(&used, bytes, __ATOMIC_RELAXED);
    if (at + bytes <= sizeof at_hand)
        return at_hand + at;
    __atomic_fetch_sub(&used, bytes, __ATOMIC_RELAXED);
    return ensio_raw_memory(bytes);
}

static int object_at(const void *address, struct object *object)
{
#if __GLIBC_PREREQ(2, 35)
    struct dl_find_object found; /* takes no lock */
    if (_dl_find_object((void *)(uintptr_t)address, &found) != 0)
        return -1;
    *object = (struct object){found.dlfo_map_start, found.dlfo_map_end, found.dlfo_link_map};
#else
    Dl_info found;
    struct link_map *map;
    if (!dladdr1((void *)(uintptr_t)address, &found, (void **)&map, RTLD_DL_LINKMAP))
        return -1;
    *object = (struct object){found.dli_fbase, map->l_ld, map};
#endif
    return 0;
}

static int same(const struct object *one, const struct object *other)
{
    return one->start == other->start && one->end == other->end && one->map == other->map;
}

static const char *dynamic_pointer(const struct link_map *map, long tag)
{
    for (const __typeof__(*map->l_ld) *entry = map->l_ld; entry && entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == tag) /* some systems leave these relative to the object */
            return (const char *)(entry->d_un.d_ptr < map->l_addr ? entry->d_un.d_ptr + map->l_addr
                                                                  : entry->d_un.d_ptr);
    return NULL;
}

/* A function of a loaded library, unless it comes from a dependency. */
static void *own_probe(const struct ensio_library_kind *kind, const char *name)
{
    void *handle = dlopen(name, RTLD_LAZY | RTLD_NOLOAD), *found = NULL;
    struct link_map *map;
    struct object object;
    if (!handle)
        return NULL;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0)
        found = dlsym(handle, kind->probe);
    if (found && (object_at(found, &object) != 0 || object.map != map))
        found = NULL;
    dlclose(handle);
    return found;
}

/* Debian's libraries have versioned symbols, which bind a caller to the library that it was linked with. */
static void *versioned_probe(const struct ensio_library_kind *kind, const struct link_map *map)
{
    const char *needed = dynamic_pointer(map, DT_VERNEED), *strings = dynamic_pointer(map, DT_STRTAB);
    void *found = NULL;
    while (needed && strings && !found) {
        const Elf64_Verneed *entry = (const void *)needed; /* the same for 32 bits */
        const char *name = strings + entry->vn_file;
        if (strstr(name, kind->named))
            found = own_probe(kind, name);
        needed = entry->vn_next ? needed + entry->vn_next : NULL;
    }
    return found;
}

/* Whether an address lies in the recorder. */
static int is_own(const void *address)
{
    static const void *start, *end;
    const void *last = __atomic_load_n(&end, __ATOMIC_ACQUIRE);
    struct object own;
    if (ENSIO_UNLIKELY(!last) && object_at((const void *)(uintptr_t)ensio_library_of, &own) == 0) {
        __atomic_store_n(&start, own.start, __ATOMIC_RELAXED);
        __atomic_store_n(&end, own.end, __ATOMIC_RELEASE);
        last = own.end;
    }
    return address < last && address >= __atomic_load_n(&start, __ATOMIC_RELAXED);
}

/* A library that the caller loaded locally. */
static void *local_probe(const struct ensio_library_kind *kind, const struct link_map *map)
{
    void *handle = dlopen(*map->l_name ? map->l_name : NULL, RTLD_LAZY | RTLD_NOLOAD);
    void *found = handle ? dlsym(handle, kind->probe) : NULL;
    if (handle)
        dlclose(handle);
    return found && !is_own(found) ? found : NULL;
}

/* The function that the dynamic linker would bind the caller to: the version that it requires, else the first in global
 * order, else one among its dependencies; without a calling object, the best match. */
static void *probe_for(const struct ensio_library_kind *kind, const struct link_map *map)
{
    void *found = map ? versioned_probe(kind, map) : NULL;
    if (!found)
        found = dlsym(RTLD_NEXT, kind->probe);
    if (!found && map)
        found = local_probe(kind, map);
    return found ? found : ensio_resolve(kind->probe);
}

static const struct ensio_loaded *known_library(const struct ensio_loaded *first, const struct object *object)
{
    for (; first; first = first->next)
        if (same(&first->object, object))
            return first;
    return NULL;
}

static const struct ensio_loaded *make_library(struct ensio_library_kind *kind, const struct object *object,
                                               const void *probe)
{
    static uint32_t numbers = ENSIO_LINKED_LIBRARIES;
    const char *name = object->map->l_name;
    void *handle = dlopen(*name ? name : NULL, RTLD_LAZY | RTLD_NOLOAD);
    struct ensio_loaded *made = handle ? room_for(sizeof *made + kind->part_bytes) : NULL;
    if (made) {
        made->object = *object;
        made->probe = probe;
        kind->fill(kind, made->part, handle, __atomic_fetch_add(&numbers, 1, __ATOMIC_RELAXED));
    }
    if (handle)
        dlclose(handle);
    const struct ensio_loaded *first = __atomic_load_n(&kind->libraries, __ATOMIC_ACQUIRE);
    while (made) {
        const struct ensio_loaded *already = known_library(first, object); /* another thread was faster */
        if (already)
            return already;
        made->next = first;
        if (__atomic_compare_exchange_n(&kind->libraries, &first, made, 0, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE))
            break;
    }
    return made;
}

static const struct ensio_loaded *library_with(struct ensio_library_kind *kind, const void *function)
{
    struct object object;
    if (!function || object_at(function, &object) != 0)
        return NULL;
    const struct ensio_loaded *library = known_library(__atomic_load_n(&kind->libraries, __ATOMIC_ACQUIRE), &object);
    return library ? library : make_library(kind, &object, function);
}

static void keep(struct ensio_library_kind *kind, const struct object *object, const struct ensio_loaded *library)
{
    struct ensio_caller *made = room_for(sizeof *made);
    if (!made)
        return;
    *made = (struct ensio_caller){*object, library, __atomic_load_n(&kind->callers, __ATOMIC_RELAXED)};
    while (!__atomic_compare_exchange_n(&kind->callers, &made->next, made, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
}

static int loaded(const struct ensio_loaded *library)
{
    struct object now;
    return object_at(library->probe, &now) == 0 && same(&now, &library->object);
}

const void *ensio_library_of(struct ensio_library_kind *kind, const void *address)
{
    static _Thread_local const void *latest[ENSIO_LIBRARY_KINDS];
    if (ENSIO_UNLIKELY(is_own(address))) /* the library ends a function by a jump to another */
        return latest[kind->index];
    const struct ensio_loaded *library = NULL;
    struct object object = {.map = NULL};
    const struct ensio_caller *caller = __atomic_load_n(&kind->callers, __ATOMIC_ACQUIRE);
    const int known = object_at(address, &object) == 0;
    while (caller && !(known && same(&caller->object, &object) && loaded(caller->library)))
        caller = caller->next;
    if (ENSIO_LIKELY(caller != NULL)) {
        library = caller->library;
    } else {
        const int error = errno;
        library = library_with(kind, probe_for(kind, object.map));
        if (known && library)
            keep(kind, &object, library);
        dlerror(); /* clears the error, which is not the program's */
        errno = error;
    }
    return latest[kind->index] = library ? library->part : NULL;
}
