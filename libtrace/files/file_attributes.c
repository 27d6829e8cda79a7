#include "file_attributes.h"

#include "paths.h"

#include <core/bounded_string.h>
#include <core/lock.h>
#include <core/memory.h>
#include <core/rawsys.h>
#include <spool/mounts.h>
#include <spool/spool.h>

#include <string.h>

#define MOST_LAYOUT_BYTES 65536
#define KEPT_LAYOUT_BYTES 4096 /* its header, and the targets of the first stripes */

static int lies_under(const char *path, const char *point)
{
    const size_t length = strlen(point);
    return length == 1 || (strncmp(path, point, length) == 0 && (path[length] == '/' || !path[length]));
}

static void add_layout(struct ensio_string *facts, int fd)
{
    static void *room;
    static const char digits[] = "0123456789abcdef";
    const unsigned char *const layout = ensio_table(&room, MOST_LAYOUT_BYTES);
    const long length = ENSIO_RAW(SYS_fgetxattr, fd, "lustre.lov", layout, MOST_LAYOUT_BYTES);
    if (length <= 0)
        return;
    ensio_add(facts, "lustre.lov=");
    for (long i = 0; i < length && i < KEPT_LAYOUT_BYTES; i++)
        ensio_add_bytes(facts, (const char[]){digits[layout[i] >> 4], digits[layout[i] & 15]}, 2);
    ensio_add_bytes(facts, "", 1);
}

static int is_elsewhere(const struct ensio_known_mount *mount, const char *path)
{
    return mount->point[0] && !lies_under(path, mount->point);
}

/* Stores attributes: "key=value" strings, each ended by a NUL. */
static void store(uint32_t file, const char *facts, uint32_t length)
{
    if (file && ensio_file_store(file) == 0)
        ensio_text_store(ENSIO_TEXT_FILE_FACTS, file, facts, length);
}

/* The caller holds the lock. */
static void store_attributes(int fd, uint32_t file, uint64_t id, int is_regular)
{
    static char text[2 * KEPT_LAYOUT_BYTES + ENSIO_MOUNT_POINT_ROOM + 64];
    struct ensio_string facts = ensio_string_in(text, sizeof text);
    const struct ensio_known_mount *mount = ensio_mount_of(fd, id);
    if (!mount || !ensio_file_is_first_opened(file))
        return;
    if (is_elsewhere(mount, ensio_file_path(file))) {
        ensio_add(&facts, "mount=");
        ensio_add(&facts, mount->point);
        ensio_add_bytes(&facts, "", 1);
    }
    if (mount->is_lustre && is_regular)
        add_layout(&facts, fd);
    if (facts.length)
        store(file, text, facts.length);
}

void ensio_file_attributes(int fd, uint32_t file, uint64_t mount, int is_regular)
{
    const struct ensio_known_mount *seen = ensio_mount_seen(mount);
    if (!file || (seen && !seen->is_lustre && !is_elsewhere(seen, ensio_file_path(file))))
        return;
    struct ensio_held held = ensio_lock();
    store_attributes(fd, file, mount, is_regular);
    ensio_unlock(held);
}

void ensio_file_opened_with(const struct ensio_named *named, int flags)
{
    if (!(flags & ENSIO_BYPASSING) || (flags & O_ACCMODE) == O_RDONLY || !named->name ||
        ensio_name_was_synced(named->name))
        return;
    char text[64];
    struct ensio_string facts = ensio_string_in(text, sizeof text);
    ensio_add(&facts, "open.flags=");
    if (flags & O_DSYNC)
        ensio_add(&facts, (flags & O_SYNC) == O_SYNC ? "O_SYNC" : "O_DSYNC");
    if (flags & O_DIRECT)
        ensio_add(&facts, flags & O_DSYNC ? " O_DIRECT" : "O_DIRECT");
    ensio_add_bytes(&facts, "", 1);
    store(named->file, text, facts.length);
    __atomic_store_n(&named->name->synced, ensio_process->generation, __ATOMIC_RELAXED);
}
