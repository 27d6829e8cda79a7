#include "names.h"

#include "descriptors.h"
#include "folders.h"
#include "paths.h"

#include <core/bounded_string.h>
#include <core/globs.h>
#include <core/lock.h>
#include <core/settings.h>
#include <spool/spool.h>

#include <string.h>

/* Limits: beyond them, a path is looked up by its absolute path each time. */
#define MOST_NAMES 32768
#define MOST_TEXT_BYTES (4U << 20)

#define SHORT_BYTES 512 /* of an absolute path on the stack, because a signal handler's stack may be small */

static struct ensio_text_table names;
static uint32_t count, text_bytes;

uint32_t ensio_names_changed = 1;

static uint32_t folder_of(int folder, const char *path, uint32_t length)
{
    return length && *path == '/' ? ENSIO_ROOT_FOLDER : ensio_folder_known(folder);
}

struct ensio_name *ensio_name_find(int folder, const char *path, uint32_t length)
{
    const uint32_t relative_to = folder_of(folder, path, length);
    if (ENSIO_UNLIKELY(relative_to == ENSIO_NO_FOLDER))
        return NULL;
    const struct ensio_kept like = ensio_kept_like(relative_to, path, length);
    struct ensio_name *name = (struct ensio_name *)ensio_kept_find(&names, &like);
    if (!name || !name->file)
        return name;
    const int stored =
        __atomic_load_n(&ensio_spool, __ATOMIC_RELAXED) != NULL &&
        __atomic_load_n(&name->spool, __ATOMIC_RELAXED) == __atomic_load_n(&ensio_spool_number, __ATOMIC_RELAXED);
    return ENSIO_LIKELY(stored) ? name : NULL;
}

static struct ensio_name *keep(const struct ensio_kept *like, uint32_t file, uint32_t spool)
{
    struct ensio_name *name = (struct ensio_name *)ensio_kept_find(&names, like);
    if (!name) {
        const char *path = like->seed == ENSIO_ROOT_FOLDER ? ensio_file_path(file) : NULL;
        const int is_path = path && strlen(path) == like->length && memcmp(path, like->text, like->length) == 0;
        const uint32_t own = is_path ? 0 : like->length;
        if (__atomic_load_n(&count, __ATOMIC_RELAXED) >= MOST_NAMES ||
            __atomic_load_n(&text_bytes, __ATOMIC_RELAXED) + own > MOST_TEXT_BYTES ||
            !(name = ensio_keep((uint32_t)sizeof *name + own)))
            return NULL;
        *name = (struct ensio_name){.path = *like, .file = file};
        name->path.text = is_path ? path : memcpy(name + 1, like->text, own);
        __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&text_bytes, own, __ATOMIC_RELAXED);
        name = (struct ensio_name *)ensio_kept_add(&names, &name->path);
    }
    if (!name || name->file != file)
        return NULL;
    __atomic_store_n(&name->spool, spool, __ATOMIC_RELAXED);
    return name;
}

static struct ensio_named named_by(const char *absolute, const struct ensio_kept *like)
{
    const uint32_t spool = __atomic_load_n(&ensio_spool_number, __ATOMIC_RELAXED);
    struct ensio_named named = ensio_name_of_kernel(absolute);
    if (like->seed != ENSIO_NO_FOLDER && (named.left_out || ensio_file_is_single(named.file)))
        named.name = keep(like, named.file, spool);
    return named;
}

/* Asks for the folder, or has no room on the stack. */
static struct ensio_named look_up_slowly(int folder, const char *path, uint32_t length)
{
    static char text[ENSIO_PATH_ROOM];
    struct ensio_held held = ensio_lock();
    if (length > sizeof text)
        length = sizeof text;
    memcpy(text, path, length);
    uint32_t relative_to;
    const char *absolute = ensio_absolute_path(folder, text, length, &relative_to);
    const struct ensio_kept like = ensio_kept_like(relative_to, text, length);
    const struct ensio_named named = named_by(absolute, &like);
    ensio_unlock(held);
    return named;
}

/* Another thread may change the text meanwhile, so it is read once. */
struct ensio_named ensio_name_look_up(int folder, const char *path, uint32_t length)
{
    char absolute[SHORT_BYTES], text[SHORT_BYTES / 2];
    const uint32_t relative_to = folder_of(folder, path, length);
    const struct ensio_kept *const begin = ensio_folder_name(relative_to);
    if (!begin || length > sizeof text || begin->length + length + 2 > sizeof absolute)
        return look_up_slowly(folder, path, length);
    struct ensio_string whole = ensio_string_in(absolute, sizeof absolute);
    memcpy(text, path, length);
    ensio_add_bytes(&whole, begin->text, begin->length);
    ensio_path_below(&whole, text, length);
    const struct ensio_kept like = ensio_kept_like(relative_to, text, length);
    return named_by(absolute, &like);
}

struct ensio_named ensio_name_of_kernel(const char *path)
{
    struct ensio_named named = {.left_out = ensio_excluded(path)};
    if (!named.left_out)
        named.file = ensio_file_number(path);
    return named;
}

void ensio_name_opened(struct ensio_name *name, int is_regular, uint32_t changes)
{
    __atomic_store_n(&name->regular, is_regular ? changes : 0, __ATOMIC_RELAXED);
    __atomic_store_n(&name->opened, ensio_process->generation, __ATOMIC_RELAXED);
}
