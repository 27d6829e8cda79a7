#include "mounts.h"

#include "process_facts.h"
#include "spool.h"

#include <core/bounded_string.h>
#include <core/private_files.h>
#include <core/rawsys.h>

#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#define MOST_MOUNTS 64 /* mounts of the node that are remembered */
#define KEPT_ROOM 16384
#define MOST_READINGS 32 /* readings of the table, for mounts that appear later */

/* Splits off the next word of a line. */
static char *next_word(char **at)
{
    char *word = *at, *end = strchr(word, ' ');
    *at = end ? end + 1 : word + strlen(word);
    if (end)
        *end = '\0';
    return word;
}

struct each_mount {
    int (*each)(const struct ensio_mount *mount, void *state);
    void *state;
};

static int mount_line(char *line, void *state)
{
    struct each_mount *given = state;
    struct ensio_mount mount = {.id = next_word(&line)};
    next_word(&line);
    mount.device = next_word(&line);
    next_word(&line);
    mount.point = next_word(&line);
    while (*line && strcmp(next_word(&line), "-") != 0)
        ;
    mount.type = next_word(&line);
    mount.source = next_word(&line);
    return *mount.type ? given->each(&mount, given->state) : 0;
}

/* The table while a spool is made. A longer one is read from the kernel each time. */
static char kept[KEPT_ROOM];
static uint32_t kept_bytes;
static int keeps;

static int keep_line(char *line, void *unused)
{
    const size_t bytes = strlen(line) + 1;
    if (bytes > sizeof kept - kept_bytes) {
        keeps = 0;
        return 1;
    }
    memcpy(kept + kept_bytes, line, bytes);
    kept_bytes += (uint32_t)bytes;
    return 0;
}

static void each_kept_mount(struct each_mount *given)
{
    static char line[KEPT_ROOM]; /* the words of a line are split in it */
    for (uint32_t at = 0; at < kept_bytes;) {
        const size_t bytes = strlen(kept + at) + 1;
        memcpy(line, kept + at, bytes);
        at += (uint32_t)bytes;
        if (mount_line(line, given))
            return;
    }
}

void ensio_mounts_keep(void)
{
    kept_bytes = 0;
    keeps = 1;
}

void ensio_mounts_keep_no_more(void)
{
    keeps = 0;
}

void ensio_each_mount(int (*each)(const struct ensio_mount *mount, void *state), void *state)
{
    struct each_mount given = {each, state};
    if (keeps && !kept_bytes)
        ensio_private_each_line("/proc/self/mountinfo", keep_line, NULL);
    if (keeps && kept_bytes)
        each_kept_mount(&given);
    else
        ensio_private_each_line("/proc/self/mountinfo", mount_line, &given);
}

static struct ensio_known_mount mounts[MOST_MOUNTS];
static uint32_t mount_count;

static struct ensio_known_mount *mount_by(uint64_t id)
{
    for (uint32_t i = 0; i < __atomic_load_n(&mount_count, __ATOMIC_ACQUIRE); i++)
        if (mounts[i].id == id)
            return &mounts[i];
    return NULL;
}

const struct ensio_known_mount *ensio_mount_seen(uint64_t id)
{
    const struct ensio_known_mount *mount = mount_by(id);
    return mount && __atomic_load_n(&mount->is_known, __ATOMIC_ACQUIRE) ? mount : NULL;
}

static struct ensio_known_mount *add_mount(uint64_t id)
{
    if (mount_count == MOST_MOUNTS)
        return NULL;
    mounts[mount_count].id = id;
    return &mounts[__atomic_fetch_add(&mount_count, 1, __ATOMIC_RELEASE)];
}

struct ensio_mounted ensio_mounted;

static void remember_type(const struct ensio_mount *seen)
{
    ensio_mounted.nfs |= strcmp(seen->type, "nfs") == 0 || strcmp(seen->type, "nfs4") == 0;
    ensio_mounted.lustre |= strcmp(seen->type, "lustre") == 0;
    const size_t bytes = strlen(seen->point) + 1;
    if (strcmp(seen->type, "cgroup2") == 0 && bytes <= sizeof ensio_mounted.cgroup)
        memcpy(ensio_mounted.cgroup, seen->point, bytes);
}

static int remember_mount(const struct ensio_mount *seen, void *unused)
{
    remember_type(seen);
    const uint64_t id = strtoull(seen->id, NULL, 10);
    const size_t length = strlen(seen->point);
    struct ensio_known_mount *mount = length < ENSIO_MOUNT_POINT_ROOM && !mount_by(id) ? add_mount(id) : NULL;
    if (mount) {
        memcpy(mount->point, seen->point, length + 1);
        mount->is_lustre = strcmp(seen->type, "lustre") == 0;
    }
    return 0;
}

static int64_t read_mounts(void *unused)
{
    ensio_each_mount(remember_mount, NULL);
    return 0;
}

void ensio_mounts_read(void)
{
    if (!mount_count)
        read_mounts(NULL);
}

/* statfs contacts all Lustre servers, and Lustre stripes each file differently anyway. */
static void store_block_size(int fd, const struct ensio_known_mount *mount)
{
    static int tells = -1;
    struct statfs found;
    char text[ENSIO_MOUNT_POINT_ROOM + 64];
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

/* A mount that is missing in the table stays without a name, so that the table is read only once for it. */
const struct ensio_known_mount *ensio_mount_of(int fd, uint64_t id)
{
    static uint32_t readings;
    if (id == ENSIO_NO_MOUNT)
        return NULL;
    struct ensio_known_mount *mount = mount_by(id);
    if (!mount && readings < MOST_READINGS) {
        readings++;
        ensio_with_private_files(read_mounts, NULL);
        mount = mount_by(id);
        if (!mount)
            mount = add_mount(id);
    }
    if (mount && !mount->is_known) {
        store_block_size(fd, mount);
        __atomic_store_n(&mount->is_known, 1, __ATOMIC_RELEASE);
    }
    return mount;
}
