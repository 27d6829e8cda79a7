#include "names.h"

#include "descriptors.h"
#include "paths.h"
#include "working_folder.h"

#include <core/bounded_string.h>
#include <core/rawsys.h>
#include <core/settings.h>
#include <spool/spool.h>

#include <string.h>

/* Limits: beyond them, further paths take the lock each time. */
#define MOST_NAMES 32768
#define MOST_TEXT_BYTES (4U << 20)

#define BLOCK_BYTES 65536
#define FIRST_SLOTS 512
#define GROWTH 4

/* At most half full. A reader may still be in an older table, so that none is unmapped. */
struct table {
    uint64_t mask;
    struct ensio_name *slots[];
};

static struct table *table;
static uint32_t count, text_bytes;
static char *block;
static uint32_t block_left;

uint32_t ensio_names_changed = 1;

/* The slot with the name, or the empty one for it. Two paths with the same hash stay two paths. */
static struct ensio_name **slot_for(struct table *in, uint64_t hash, uint32_t folder, const char *text, uint32_t length)
{
    for (uint64_t at = hash;; at++) {
        struct ensio_name **slot = &in->slots[at & in->mask], *name = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
        if (!name || (name->hash == hash && name->length == length && name->folder == folder &&
                      memcmp(name->text, text, length) == 0))
            return slot;
    }
}

static uint32_t folder_of(int folder, const char *path, uint32_t length)
{
    if (length && *path == '/')
        return ENSIO_ROOT_FOLDER;
    return folder == AT_FDCWD ? ensio_folder_known() : ENSIO_NO_FOLDER;
}

struct ensio_name *ensio_name_find(int folder, const char *path, uint32_t length)
{
    struct table *in = __atomic_load_n(&table, __ATOMIC_ACQUIRE);
    const uint32_t relative_to = folder_of(folder, path, length);
    if (ENSIO_UNLIKELY(!in || relative_to == ENSIO_NO_FOLDER))
        return NULL;
    struct ensio_name *name = __atomic_load_n(
        slot_for(in, ensio_hash_bytes(relative_to, path, length), relative_to, path, length), __ATOMIC_ACQUIRE);
    if (!name || !name->file)
        return name;
    const int stored =
        __atomic_load_n(&ensio_spool, __ATOMIC_RELAXED) != NULL &&
        __atomic_load_n(&name->spool, __ATOMIC_RELAXED) == __atomic_load_n(&ensio_spool_number, __ATOMIC_RELAXED);
    return ENSIO_LIKELY(stored) ? name : NULL;
}

static void *take(uint32_t bytes)
{
    bytes = (bytes + 7) & ~7U;
    if (block_left < bytes) {
        char *fresh = ensio_raw_memory(BLOCK_BYTES);
        if (!fresh)
            return NULL;
        block = fresh;
        block_left = BLOCK_BYTES;
    }
    void *taken = block;
    block += bytes;
    block_left -= bytes;
    return taken;
}

static int has_room(void)
{
    const uint64_t slots = table ? table->mask + 1 : 0;
    if (2 * (uint64_t)count < slots)
        return 1;
    const uint64_t more = slots ? GROWTH * slots : FIRST_SLOTS;
    struct table *larger = ensio_raw_memory(sizeof *larger + more * sizeof *larger->slots);
    if (!larger)
        return 0;
    larger->mask = more - 1;
    for (uint64_t i = 0; i < slots; i++) {
        struct ensio_name *name = table->slots[i];
        if (name)
            *slot_for(larger, name->hash, name->folder, name->text, name->length) = name;
    }
    __atomic_store_n(&table, larger, __ATOMIC_RELEASE);
    return 1;
}

static struct ensio_name *keep(uint32_t folder, const char *text, uint32_t length, uint32_t file)
{
    if (folder == ENSIO_NO_FOLDER || !has_room())
        return NULL;
    const uint64_t hash = ensio_hash_bytes(folder, text, length);
    struct ensio_name **slot = slot_for(table, hash, folder, text, length), *name = *slot;
    if (name) {
        if (name->file != file)
            return NULL;
        __atomic_store_n(&name->spool, ensio_spool_number, __ATOMIC_RELAXED);
        return name;
    }
    const char *path = ensio_file_path(file);
    const int is_path = path && strlen(path) == length && memcmp(path, text, length) == 0;
    if (count == MOST_NAMES || text_bytes + length > MOST_TEXT_BYTES)
        return NULL;
    name = take((uint32_t)sizeof *name + (is_path ? 0 : length));
    if (!name)
        return NULL;
    *name = (struct ensio_name){
        .hash = hash,
        .text = is_path ? path : memcpy(name + 1, text, length),
        .length = length,
        .folder = folder,
        .file = file,
        .spool = ensio_spool_number,
    };
    count++;
    text_bytes += is_path ? 0 : length;
    __atomic_store_n(slot, name, __ATOMIC_RELEASE);
    return name;
}

/* Another thread may change the text meanwhile, so it is read once. */
struct ensio_named ensio_name_look_up(int folder, const char *path, uint32_t length)
{
    static char text[ENSIO_PATH_ROOM];
    if (length > sizeof text)
        length = sizeof text;
    memcpy(text, path, length);
    uint32_t relative_to = ENSIO_ROOT_FOLDER;
    struct ensio_named named = {.absolute = ensio_absolute_path(folder, text, length, &relative_to)};
    named.left_out = ensio_listed(named.absolute, ensio_settings.exclude);
    if (!named.left_out)
        named.file = ensio_file_number(named.absolute);
    if (named.left_out || ensio_file_is_single(named.file))
        named.name = keep(relative_to, text, length, named.file);
    return named;
}

void ensio_name_opened(struct ensio_name *name, int is_regular, uint32_t changes)
{
    __atomic_store_n(&name->regular, is_regular ? changes : 0, __ATOMIC_RELAXED);
    __atomic_store_n(&name->opened, ensio_process->generation, __ATOMIC_RELAXED);
}
