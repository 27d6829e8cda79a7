#include "file_attributes.h"

#include "paths.h"

#include <core/bounded_string.h>
#include <core/private_files.h>
#include <core/rawsys.h>
#include <spool/process_facts.h>
#include <spool/spool.h>

#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#define MOST_MOUNTS 64 /* of the node that are remembered, and whose files are asked about */
#define MOST_READINGS 32 /* of the table of mounts, for those that came later */
#define POINT_ROOM 256
#define MOST_LAYOUT_BYTES 65536
#define KEPT_LAYOUT_BYTES 4096 /* its header, and the targets of the first stripes */

static struct mount {
    uint64_t id;
    int is_lustre;
    int is_known; /* its block size is stored */
    char point[POINT_ROOM];
} mounts[MOST_MOUNTS];
static uint32_t mount_count;

/* The kernel's number for the mount of an open file, without a word to a server. */
static int mount_of(int fd, uint64_t *id)
{
#ifdef STATX_MNT_ID
    struct statx about;
    if (ENSIO_RAW(SYS_statx, fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID, &about) == 0 &&
        (about.stx_mask & STATX_MNT_ID)) {
        *id = about.stx_mnt_id;
        return 1;
    }
#endif
    return 0;
}

static struct mount *mount_by(uint64_t id)
{
    for (uint32_t i = 0; i < mount_count; i++)
        if (mounts[i].id == id)
            return &mounts[i];
    return NULL;
}

static struct mount *add_mount(uint64_t id)
{
    if (mount_count == MOST_MOUNTS)
        return NULL;
    mounts[mount_count].id = id;
    return &mounts[mount_count++];
}

static int remember_mount(const struct ensio_mount *seen, void *unused)
{
    const uint64_t id = strtoull(seen->id, NULL, 10);
    const size_t length = strlen(seen->point);
    struct mount *mount = length < POINT_ROOM && !mount_by(id) ? add_mount(id) : NULL;
    if (mount) {
        memcpy(mount->point, seen->point, length + 1);
        mount->is_lustre = strcmp(seen->type, "lustre") == 0;
    }
    return mount_count == MOST_MOUNTS;
}

static int64_t read_mounts(void *unused)
{
    ensio_each_mount(remember_mount, NULL);
    return 0;
}

void ensio_file_attributes_begin(void)
{
    if (!mount_count)
        read_mounts(NULL);
}

/* statfs asks all of Lustre's servers; its files are striped each in its own way anyhow. */
static void store_block_size(int fd, const struct mount *mount)
{
    static int tells = -1;
    struct statfs found;
    char text[POINT_ROOM + 64];
    struct ensio_string block = ensio_string_in(text, sizeof text);
    if (tells < 0)
        tells = ensio_reports_node();
    if (!tells || mount->is_lustre || !mount->point[0] || ENSIO_RAW(SYS_fstatfs, fd, &found) != 0 || found.f_bsize <= 0)
        return;
    ensio_add(&block, "block.");
    ensio_add(&block, mount->point);
    ensio_add(&block, "=");
    ensio_add_number(&block, (uint64_t)found.f_bsize);
    ensio_add_bytes(&block, "", 1);
    ensio_text_store(ENSIO_TEXT_PROPERTIES, 0, text, block.length);
}

/* A mount that is nowhere in the table stays without a name, so that the table is read once for it. */
static const struct mount *known_mount(int fd)
{
    static uint32_t readings;
    uint64_t id;
    if (!mount_of(fd, &id))
        return NULL;
    struct mount *mount = mount_by(id);
    if (!mount && readings < MOST_READINGS) {
        readings++;
        ensio_with_private_files(read_mounts, NULL);
        mount = mount_by(id);
        if (!mount)
            mount = add_mount(id);
    }
    if (mount && !mount->is_known) {
        mount->is_known = 1;
        store_block_size(fd, mount);
    }
    return mount;
}

static int lies_under(const char *path, const char *point)
{
    const size_t length = strlen(point);
    return length == 1 || (strncmp(path, point, length) == 0 && (path[length] == '/' || !path[length]));
}

static void add_layout(struct ensio_string *facts, int fd)
{
    static unsigned char layout[MOST_LAYOUT_BYTES];
    static const char digits[] = "0123456789abcdef";
    const long length = ENSIO_RAW(SYS_fgetxattr, fd, "lustre.lov", layout, sizeof layout);
    if (length <= 0)
        return;
    ensio_add(facts, "lustre.lov=");
    for (long i = 0; i < length && i < KEPT_LAYOUT_BYTES; i++)
        ensio_add_bytes(facts, (const char[]){digits[layout[i] >> 4], digits[layout[i] & 15]}, 2);
    ensio_add_bytes(facts, "", 1);
}

void ensio_file_attributes(int fd, uint32_t file, const char *path, int is_regular)
{
    static char text[2 * KEPT_LAYOUT_BYTES + POINT_ROOM + 64];
    struct ensio_string facts = ensio_string_in(text, sizeof text);
    if (!file || !ensio_file_is_first_opened(file))
        return;
    const struct mount *mount = known_mount(fd);
    if (!mount)
        return;
    if (mount->point[0] && !lies_under(path, mount->point)) {
        ensio_add(&facts, "mount=");
        ensio_add(&facts, mount->point);
        ensio_add_bytes(&facts, "", 1);
    }
    if (mount->is_lustre && is_regular)
        add_layout(&facts, fd);
    if (facts.length)
        ensio_file_attributes_store(file, text, facts.length);
}

void ensio_file_attributes_store(uint32_t file, const char *facts, uint32_t length)
{
    if (file && ensio_file_store(file) == 0)
        ensio_text_store(ENSIO_TEXT_FILE_FACTS, file, facts, length);
}
