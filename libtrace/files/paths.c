#include "paths.h"

#include <core/bounded_string.h>
#include <core/rawsys.h>
#include <core/recorder.h>
#include <core/settings.h>
#include <spool/spool.h>

#include <stddef.h>
#include <string.h>

/* Paths lie in memory that the recorder maps for itself, because a signal handler that opens a file may have
 * interrupted malloc. The table maps the hash of a path to its number, and is at most half full. */
#define BLOCK_BYTES 65536

/* Limits: paths that a process keeps, and folders that stand for further ones. An event holds numbers of 16 bits; one
 * number stands for all that has no folder. */
#define MOST_OTHERS 4096
#define MOST_PATHS (UINT16_MAX - MOST_OTHERS - 1)
#define MOST_PATH_BYTES (8U << 20)

struct entry {
    uint64_t hash;
    const char *path;
    uint32_t spool;  /* number of the spool that holds it */
    uint32_t opened; /* generation of the process that has queried it */
    int is_other;    /* stands for paths that are not kept */
};

static struct entry *entries; /* by number; entry 0 is not used */
static uint32_t *table;
static uint32_t count = 1, room; /* room: entries, and half the slots of the table */
static char *block;
static uint32_t block_left;
static uint32_t path_bytes, others;

static uint32_t *slot_for(uint64_t hash, const char *path)
{
    uint32_t mask = 2 * room - 1, at = (uint32_t)hash & mask;
    while (table[at] && (entries[table[at]].hash != hash || strcmp(entries[table[at]].path, path) != 0))
        at = (at + 1) & mask;
    return &table[at];
}

static int grow(void)
{
    uint32_t more = room ? 2 * room : 512;
    struct entry *new_entries = ensio_raw_memory(more * sizeof *entries);
    uint32_t *new_table = ensio_raw_memory(2UL * more * sizeof *table);
    if (!new_entries || !new_table) {
        if (new_entries)
            ensio_raw_unmap(new_entries, more * sizeof *entries);
        if (new_table)
            ensio_raw_unmap(new_table, 2UL * more * sizeof *table);
        return -1;
    }
    struct entry *old_entries = entries;
    uint32_t *old_table = table, old_room = room;
    if (old_room)
        memcpy(new_entries, old_entries, old_room * sizeof *entries);
    entries = new_entries;
    table = new_table;
    room = more;
    for (uint32_t number = 1; number < count; number++)
        *slot_for(entries[number].hash, entries[number].path) = number;
    if (old_room) {
        ensio_raw_unmap(old_entries, old_room * sizeof *entries);
        ensio_raw_unmap(old_table, 2UL * old_room * sizeof *table);
    }
    return 0;
}

static const char *keep(const char *path, uint32_t length)
{
    if (block_left < length + 1) {
        uint32_t bytes = length + 1 > BLOCK_BYTES ? length + 1 : BLOCK_BYTES;
        char *fresh = ensio_raw_memory(bytes);
        if (!fresh)
            return NULL;
        block = fresh;
        block_left = bytes;
    }
    char *kept = memcpy(block, path, length + 1);
    block += length + 1;
    block_left -= length + 1;
    return kept;
}

static uint64_t hash_of(const char *path)
{
    return ensio_hash_bytes(0, path, (uint32_t)strlen(path));
}

static uint32_t *find(const char *path)
{
    return slot_for(hash_of(path), path);
}

/* Keeps a new path: its number, or 0 without space or memory. */
static uint32_t add(const char *path, int is_other,
                    int (*store)(uint16_t kind, uint32_t id, const char *text, uint32_t length))
{
    const uint32_t length = (uint32_t)strlen(path);
    if (count >= room && grow() != 0)
        return 0;
    const char *kept = keep(path, length);
    if (!kept)
        return 0;
    if (store(ENSIO_TEXT_FILE, count, path, length) != 0) {
        block -= length + 1; /* undo keeping it */
        block_left += length + 1;
        return 0;
    }
    const uint64_t hash = hash_of(path);
    uint32_t *slot = slot_for(hash, path);
    entries[count] = (struct entry){.hash = hash, .path = kept, .spool = ensio_spool_number, .is_other = is_other};
    *slot = count;
    path_bytes += length + 1;
    return count++;
}

/* The number that stands for a path that is not kept: that of the nearest folder with such a number, else a new one for
 * the path's folder while there is room, else the one for all other paths. */
static uint32_t number_of_others(const char *path)
{
    static char name[ENSIO_PATH_ROOM + sizeof ENSIO_OTHER_PATHS];
    const uint32_t length = (uint32_t)strlen(path);
    ensio_losses->calls_on_other_paths++;
    if (!room)
        return 0;
    for (uint32_t end = length < ENSIO_PATH_ROOM ? length : 0; end-- > 0;) {
        if (path[end] != '/')
            continue;
        memcpy(name, path, end + 1);
        memcpy(name + end + 1, ENSIO_OTHER_PATHS, sizeof ENSIO_OTHER_PATHS);
        uint32_t number = *find(name);
        if (!number && others < MOST_OTHERS) {
            number = add(name, 1, ensio_text_store);
            others += number != 0;
        }
        if (number && ensio_file_store(number) == 0)
            return number;
    }
    const uint32_t number = *find(ENSIO_OTHER_PATHS);
    if (number)
        return ensio_file_store(number) == 0 ? number : 0;
    return add(ENSIO_OTHER_PATHS, 1, ensio_text_store_essential);
}

uint32_t ensio_file_number(const char *path)
{
    if ((!room && grow() != 0) || ensio_ensure_spool() != 0)
        return 0;
    uint32_t number = *find(path);
    if (number && ensio_file_store(number) == 0)
        return number;
    if (!number && count - others <= MOST_PATHS && path_bytes < MOST_PATH_BYTES)
        number = add(path, 0, ensio_text_store);
    else
        number = 0;
    return number ? number : number_of_others(path);
}

int ensio_file_store(uint32_t number)
{
    struct entry *entry = &entries[number];
    if (!number || entry->spool == ensio_spool_number)
        return 0;
    if (ensio_text_store(ENSIO_TEXT_FILE, number, entry->path, (uint32_t)strlen(entry->path)) != 0)
        return -1;
    entry->spool = ensio_spool_number;
    return 0;
}

int ensio_file_is_single(uint32_t number)
{
    return number && !entries[number].is_other;
}

int ensio_file_is_first_opened(uint32_t number)
{
    const int first = entries[number].opened != ensio_process->generation && !entries[number].is_other;
    entries[number].opened = ensio_process->generation;
    return first;
}

const char *ensio_file_path(uint32_t number)
{
    return number && number < count ? entries[number].path : NULL;
}
