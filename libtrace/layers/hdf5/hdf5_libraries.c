/* hdf5_libraries.c: finds and caches the HDF5 library of a caller.
 *
 * Nothing here takes the recorder's lock, because looking up symbols takes the dynamic linker's lock, whose holder may
 * be waiting for ours. Entries never change, so readers need no lock. */
#include "hdf5_libraries.h"

#include <core/rawsys.h>
#include <layers/wrapping.h>

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>

#define PROBE "H5Dwrite"
#define ROOM_BYTES 16384

/* A loaded object. Two objects that are loaded one after the other are mistaken for each other only if they are the
 * same file at the same address, which does no harm. */
struct object {
    const void *start, *end;
    const struct link_map *map;
};

struct library {
    struct ensio_hdf5_library part;
    struct object object;
    const struct library *next;
};

struct caller {
    struct object object;
    const struct library *library;
    const struct caller *next;
};

static const struct library *libraries;
static const struct caller *callers;

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
static void *own_probe(const char *name)
{
    void *handle = dlopen(name, RTLD_LAZY | RTLD_NOLOAD), *found = NULL;
    struct link_map *map;
    struct object object;
    if (!handle)
        return NULL;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0)
        found = dlsym(handle, PROBE);
    if (found && (object_at(found, &object) != 0 || object.map != map))
        found = NULL;
    dlclose(handle);
    return found;
}

/* Debian's libraries have versioned symbols, which bind a caller to the library that it was linked with. */
static void *versioned_probe(const struct link_map *map)
{
    const char *needed = dynamic_pointer(map, DT_VERNEED), *strings = dynamic_pointer(map, DT_STRTAB);
    void *found = NULL;
    while (needed && strings && !found) {
        const Elf64_Verneed *entry = (const void *)needed; /* the same for 32 bits */
        const char *name = strings + entry->vn_file;
        if (strstr(name, "hdf5"))
            found = own_probe(name);
        needed = entry->vn_next ? needed + entry->vn_next : NULL;
    }
    return found;
}

/* A library that the caller loaded locally. */
static void *local_probe(const struct link_map *map)
{
    struct object own, object;
    void *handle = dlopen(*map->l_name ? map->l_name : NULL, RTLD_LAZY | RTLD_NOLOAD);
    void *found = handle ? dlsym(handle, PROBE) : NULL;
    if (handle)
        dlclose(handle);
    if (!found || object_at(found, &object) != 0 || object_at(callers, &own) != 0 || same(&object, &own))
        return NULL;
    return found;
}

/* The function that the dynamic linker would bind the caller to: the version that it requires, else the first in global
 * order, else one among its dependencies; without a calling object, the best match. */
static void *probe_for(const struct link_map *map)
{
    void *found = map ? versioned_probe(map) : NULL;
    if (!found)
        found = dlsym(RTLD_NEXT, PROBE);
    if (!found && map)
        found = local_probe(map);
    return found ? found : ensio_resolve(PROBE);
}

static void fill(struct ensio_hdf5_library *library, void *handle)
{
    static const char *const names[] = {
#define SYMBOL(symbol) #symbol,
#include <calls/hdf5.def>
#undef SYMBOL
    };
    for (size_t i = 0; i < ENSIO_HDF5_FUNCTIONS; i++)
        library->functions[i] = dlsym(handle, names[i]);
#define ASK(type, name, parameters) library->hdf5.name = (type(*) parameters)dlsym(handle, "H5" #name);
    ENSIO_HDF5_QUERIES(ASK, ASK)
}

static const struct library *known_library(const struct library *first, const struct object *object)
{
    for (; first; first = first->next)
        if (same(&first->object, object))
            return first;
    return NULL;
}

static const struct library *make_library(const struct object *object)
{
    const char *name = object->map->l_name;
    void *handle = dlopen(*name ? name : NULL, RTLD_LAZY | RTLD_NOLOAD);
    struct library *made = handle ? room_for(sizeof *made) : NULL;
    if (made) {
        made->object = *object;
        fill(&made->part, handle);
    }
    if (handle)
        dlclose(handle);
    const struct library *first = __atomic_load_n(&libraries, __ATOMIC_ACQUIRE);
    while (made) {
        const struct library *already = known_library(first, object); /* another thread was faster */
        if (already)
            return already;
        made->next = first;
        made->part.hdf5.number = first ? first->part.hdf5.number + 1 : 0;
        if (__atomic_compare_exchange_n(&libraries, &first, made, 0, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE))
            break;
    }
    return made;
}

static const struct library *library_with(const void *function)
{
    struct object object;
    if (!function || object_at(function, &object) != 0)
        return NULL;
    const struct library *library = known_library(__atomic_load_n(&libraries, __ATOMIC_ACQUIRE), &object);
    return library ? library : make_library(&object);
}

static void keep(const struct object *object, const struct library *library)
{
    struct caller *made = room_for(sizeof *made);
    if (!made)
        return;
    *made = (struct caller){*object, library, __atomic_load_n(&callers, __ATOMIC_RELAXED)};
    while (!__atomic_compare_exchange_n(&callers, &made->next, made, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
}

static int loaded(const struct library *library)
{
    struct object now;
    return object_at(library->part.functions[ENSIO_FUNCTION_H5Dwrite], &now) == 0 && same(&now, &library->object);
}

const struct ensio_hdf5_library *ensio_hdf5_library(const void *address)
{
    struct object object = {.map = NULL};
    const struct caller *caller = __atomic_load_n(&callers, __ATOMIC_ACQUIRE);
    const int known = object_at(address, &object) == 0;
    while (caller && !(known && same(&caller->object, &object) && loaded(caller->library)))
        caller = caller->next;
    if (ENSIO_LIKELY(caller != NULL))
        return &caller->library->part;
    const int error = errno;
    const struct library *library = library_with(probe_for(object.map));
    if (known && library)
        keep(&object, library);
    dlerror(); /* clears the error, which is not the program's */
    errno = error;
    return library ? &library->part : NULL;
}
