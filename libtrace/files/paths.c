#include "paths.h"

#include <core/lock.h>
#include <core/memory.h>
#include <core/recorder.h>
#include <core/settings.h>
#include <core/text_table.h>
#include <spool/spool.h>

#include <string.h>

/* Limits: paths that a process keeps, and folders that stand for further ones. An event holds numbers of 16 bits; one
 * number stands for all that has no folder. */
#define MOST_OTHERS 4096
#define MOST_PATHS (UINT16_MAX - MOST_OTHERS - 1)
#define MOST_PATH_BYTES (8U << 20)

struct entry {
    struct ensio_kept path;
    uint32_t number;
    uint32_t spool;  /* number of the spool that holds it */
    uint32_t opened; /* generation of the process that has queried it */
    int is_other;    /* stands for paths that are not kept */
};

static struct ensio_text_table paths;
static struct ensio_words entries; /* their addresses, by number; entry 0 is not used */
static uint32_t count = 1, path_bytes, others;

static struct entry *entry_of(uint32_t number)
{
    const uint64_t *place = number <= UINT16_MAX ? ensio_word(&entries, number, 0) : NULL;
    return place ? (struct entry *)(uintptr_t)__atomic_load_n(place, __ATOMIC_ACQUIRE) : NULL;
}

static struct ensio_kept like(const char *path)
{
    return ensio_kept_like(0, path, (uint32_t)strlen(path));
}

static struct entry *find(const struct ensio_kept *path)
{
    return (struct entry *)ensio_kept_find(&paths, path);
}

/* Keeps a new path: its entry, or NULL without memory. If another thread was faster, a number remains unused. */
static struct entry *add(const struct ensio_kept *path, int is_other)
{
    struct entry *entry = ensio_keep((uint32_t)sizeof *entry + path->length + 1);
    if (!entry)
        return NULL;
    uint32_t number = __atomic_load_n(&count, __ATOMIC_RELAXED);
    do
        if (number > UINT16_MAX)
            return NULL;
    while (!__atomic_compare_exchange_n(&count, &number, number + 1, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    uint64_t *const place = ensio_word(&entries, number, 1);
    if (!place)
        return NULL;
    *entry = (struct entry){.path = *path, .number = number, .is_other = is_other};
    entry->path.text = memcpy(entry + 1, path->text, path->length + 1);
    __atomic_fetch_add(&path_bytes, path->length + 1, __ATOMIC_RELAXED);
    __atomic_store_n(place, (uintptr_t)entry, __ATOMIC_RELEASE);
    return (struct entry *)ensio_kept_add(&paths, &entry->path);
}

/* Threads that use a new path at the same time may each store it. */
static int store(struct entry *entry, int (*how)(uint16_t kind, uint32_t id, const char *text, uint32_t length))
{
    const uint32_t spool = __atomic_load_n(&ensio_spool_number, __ATOMIC_RELAXED);
    if (__atomic_load_n(&entry->spool, __ATOMIC_RELAXED) == spool)
        return 0;
    if (how(ENSIO_TEXT_FILE, entry->number, entry->path.text, entry->path.length) != 0)
        return -1;
    __atomic_store_n(&entry->spool, spool, __ATOMIC_RELAXED);
    return 0;
}

/* The number that stands for a path that is not kept: that of the nearest folder with such a number, else a new one for
 * the path's folder while there is room, else the one for all other paths. The caller holds the lock. */
static uint32_t number_of_others(const char *path)
{
    static char name[ENSIO_PATH_ROOM + sizeof ENSIO_OTHER_PATHS];
    const uint32_t length = (uint32_t)strlen(path);
    ensio_losses->calls_on_other_paths++;
    for (uint32_t end = length < ENSIO_PATH_ROOM ? length : 0; end-- > 0;) {
        if (path[end] != '/')
            continue;
        memcpy(name, path, end + 1);
        memcpy(name + end + 1, ENSIO_OTHER_PATHS, sizeof ENSIO_OTHER_PATHS);
        const struct ensio_kept of_folder = like(name);
        struct entry *entry = find(&of_folder);
        if (!entry && others < MOST_OTHERS) {
            entry = add(&of_folder, 1);
            others += entry != NULL;
        }
        if (entry && store(entry, ensio_text_store) == 0)
            return entry->number;
    }
    const struct ensio_kept of_all = like(ENSIO_OTHER_PATHS);
    struct entry *all = find(&of_all);
    if (!all)
        all = add(&of_all, 1);
    return all && store(all, ensio_text_store_essential) == 0 ? all->number : 0;
}

/* Slow: there is no spool yet, or no room. */
static uint32_t number_under_lock(const struct ensio_kept *path)
{
    struct ensio_held held = ensio_lock();
    struct entry *entry = ensio_ensure_spool() == 0 ? find(path) : NULL;
    const uint32_t number = !ensio_spool                                   ? 0
                            : entry && store(entry, ensio_text_store) == 0 ? entry->number
                                                                           : number_of_others(path->text);
    ensio_unlock(held);
    return number;
}

uint32_t ensio_file_number(const char *path)
{
    const struct ensio_kept wanted = like(path);
    struct entry *entry = find(&wanted);
    if (!entry && __atomic_load_n(&count, __ATOMIC_RELAXED) - others <= MOST_PATHS &&
        __atomic_load_n(&path_bytes, __ATOMIC_RELAXED) < MOST_PATH_BYTES)
        entry = add(&wanted, 0);
    const int has_spool = __atomic_load_n(&ensio_spool, __ATOMIC_ACQUIRE) != NULL;
    return entry && has_spool && store(entry, ensio_text_store) == 0 ? entry->number : number_under_lock(&wanted);
}

int ensio_file_store(uint32_t number)
{
    return number ? store(entry_of(number), ensio_text_store) : 0;
}

void ensio_file_linked(uint32_t number, uint32_t to)
{
    static const char ending[] = " (deleted)";
    const uint32_t length = (uint32_t)sizeof ending - 1;
    struct ensio_held held = ensio_lock();
    struct entry *entry = entry_of(number), *named = entry_of(to);
    if (entry && named && !named->is_other && entry->path.length > length &&
        memcmp(entry->path.text + entry->path.length - length, ending, length) == 0) {
        entry->path.text = named->path.text;
        entry->path.length = named->path.length;
        ensio_text_store(ENSIO_TEXT_FILE, number, entry->path.text, entry->path.length);
    }
    ensio_unlock(held);
}

int ensio_file_is_single(uint32_t number)
{
    return number && !entry_of(number)->is_other;
}

int ensio_file_is_first_opened(uint32_t number)
{
    struct entry *entry = entry_of(number);
    const int first = entry->opened != ensio_process->generation && !entry->is_other;
    entry->opened = ensio_process->generation;
    return first;
}

const char *ensio_file_path(uint32_t number)
{
    const struct entry *entry = entry_of(number);
    return entry ? entry->path.text : NULL;
}
