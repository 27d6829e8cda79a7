#include "folders.h"

#include "descriptors.h"

#include <core/memory.h>
#include <core/private_files.h>
#include <core/rawsys.h>
#include <core/settings.h>

#include <string.h>

/* Limits: further folders have no identifier. */
#define MOST_FOLDERS 65536
#define MOST_NAME_BYTES (2U << 20)

struct folder {
    struct ensio_kept name;
    uint32_t id;
};

static struct ensio_text_table folders;
static struct ensio_words names; /* addresses of names, by identifier */
static uint32_t last_id = ENSIO_ROOT_FOLDER, name_bytes;

/* What was last known of a folder. Below: its identifier; above: the number of changes at that time. */
static uint64_t working_folder;
static struct ensio_words of_descriptors; /* the same by descriptor */
static uint32_t changes = 1;              /* calls that may have changed any folder or its name */
static uint32_t changing;                 /* calls that are changing the working folder, in any thread */

uint64_t ensio_folders_due;

/* Where it is kept; NULL if no wrapper knows what the descriptor is. */
static uint64_t *place_of(int fd, int makes)
{
    if (fd == AT_FDCWD)
        return &working_folder;
    const int is_known = (unsigned)fd < ensio_descriptor_end &&
                         __atomic_load_n(&ensio_descriptors[fd], __ATOMIC_RELAXED) != ENSIO_UNKNOWN;
    return is_known ? ensio_word(&of_descriptors, (unsigned)fd, makes) : NULL;
}

uint32_t ensio_folder_known(int fd)
{
    const uint64_t *place = place_of(fd, 0);
    if (ENSIO_UNLIKELY(!place || __atomic_load_n(&changing, __ATOMIC_RELAXED)))
        return ENSIO_NO_FOLDER;
    const uint64_t found = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    return found >> 32 == __atomic_load_n(&changes, __ATOMIC_ACQUIRE) ? (uint32_t)found : ENSIO_NO_FOLDER;
}

const struct ensio_kept *ensio_folder_name(uint32_t id)
{
    static const struct ensio_kept of_absolute_paths = {.text = ""};
    const uint64_t *name = id == ENSIO_NO_FOLDER ? NULL : ensio_word(&names, id, 0);
    return id == ENSIO_ROOT_FOLDER ? &of_absolute_paths : name ? (const struct ensio_kept *)(uintptr_t)*name : NULL;
}

static uint32_t id_of(const char *text, uint32_t length)
{
    struct ensio_kept like = ensio_kept_like(ENSIO_ROOT_FOLDER, text, length);
    struct folder *folder = (struct folder *)ensio_kept_find(&folders, &like);
    if (folder)
        return folder->id;
    if (last_id + 1 == MOST_FOLDERS || name_bytes + length > MOST_NAME_BYTES ||
        !(folder = ensio_keep((uint32_t)sizeof *folder + length)))
        return ENSIO_NO_FOLDER;
    name_bytes += length;
    like.text = memcpy(folder + 1, text, length);
    *folder = (struct folder){.name = like, .id = last_id + 1};
    uint64_t *const place = ensio_word(&names, folder->id, 1);
    if (!place || !ensio_kept_add(&folders, &folder->name))
        return ENSIO_NO_FOLDER;
    *place = (uintptr_t)&folder->name;
    return last_id = folder->id;
}

/* Asks the kernel for the name of a folder. What it says is kept only if the descriptor was not bound again since
 * before it was asked. */
static uint32_t ask(int fd, struct ensio_string *name)
{
    uint64_t *const place = place_of(fd, 1);
    uint64_t before = place ? __atomic_load_n(place, __ATOMIC_SEQ_CST) : 0;
    const uint64_t at = (uint64_t)__atomic_load_n(&changes, __ATOMIC_SEQ_CST) << 32;
    const int is_changing = __atomic_load_n(&changing, __ATOMIC_SEQ_CST) != 0;
    const long length = fd == AT_FDCWD ? ENSIO_RAW(SYS_getcwd, name->text, ENSIO_PATH_ROOM) - 1
                                       : ensio_descriptor_name(fd, name->text, ENSIO_PATH_ROOM);
    name->length = length > 0 && (fd == AT_FDCWD || name->text[0] == '/') ? (uint32_t)length : 0;
    name->text[name->length] = '\0';
    if (!name->length)
        ensio_add(name, "/(unknown folder)");
    if (length <= 0 || length >= ENSIO_PATH_ROOM - 1 || name->text[0] != '/' || is_changing)
        return ENSIO_NO_FOLDER;
    const uint32_t id = id_of(name->text, name->length);
    if (place && id)
        __atomic_compare_exchange_n(place, &before, at | id, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return id;
}

void ensio_folders_forget(void)
{
    __atomic_fetch_add(&changes, 1, __ATOMIC_SEQ_CST);
}

/* The upper half changes too, so that an answer of the kernel from before is not kept. */
void ensio_folder_forget(int fd)
{
    uint64_t *const place = ensio_word(&of_descriptors, (unsigned)fd, 0);
    if (place)
        __atomic_store_n(place, ((__atomic_load_n(place, __ATOMIC_RELAXED) >> 32) + 1) << 32, __ATOMIC_SEQ_CST);
}

void ensio_folder_change_begin(void)
{
    __atomic_fetch_add(&changing, 1, __ATOMIC_SEQ_CST);
}

void ensio_folder_change_end(void)
{
    ensio_folders_forget();
    __atomic_fetch_sub(&changing, 1, __ATOMIC_SEQ_CST);
}

void ensio_folder_never_known(void)
{
    ensio_folder_change_begin();
}

/* Whether an absolute path has no empty part and none that is a dot. */
static int is_normal(const char *path, const char *end)
{
    while (path && ++path < end) {
        if (*path == '/' || (*path == '.' && (path + 1 == end || path[1] == '/')))
            return 0;
        path = memchr(path, '/', (size_t)(end - path));
    }
    return !path;
}

void ensio_path_below(struct ensio_string *folder, const char *path, uint32_t bytes)
{
    const char *const end = path + bytes;
    if (!folder->length && bytes && is_normal(path, end)) {
        ensio_add_bytes(folder, path, bytes);
        return;
    }
    while (path < end) {
        if (*path == '/') {
            path++;
            continue;
        }
        const char *slash = memchr(path, '/', (size_t)(end - path));
        const uint32_t part = (uint32_t)((slash ? slash : end) - path);
        if (part != 1 || *path != '.') {
            if (!folder->length || folder->text[folder->length - 1] != '/')
                ensio_add_bytes(folder, "/", 1);
            ensio_add_bytes(folder, path, part);
        }
        path += part;
    }
    if (!folder->length)
        ensio_add(folder, "/");
}

const char *ensio_absolute_path(int folder, const char *path, uint32_t bytes, uint32_t *relative_to)
{
    static char text[2 * ENSIO_PATH_ROOM];
    struct ensio_string whole = ensio_string_in(text, sizeof text);
    const uint32_t id = bytes && *path == '/' ? ENSIO_ROOT_FOLDER : ask(folder, &whole);
    if (relative_to)
        *relative_to = id;
    ensio_path_below(&whole, path, bytes);
    return text;
}
