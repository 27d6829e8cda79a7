/* network_sources.c: counters of NFS mounts and of Lustre's client. */
#include "sources.h"

#include <core/bounded_string.h>
#include <core/private_files.h>
#include <core/rawsys.h>
#include <core/settings.h>
#include <spool/mounts.h>

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#define MOST_TARGETS 512

struct nfs {
    struct ensio_surroundings *row;
    int is_nfs, in_operations;
};

/* Reads numbers that blanks separate: how many there are. */
static uint32_t numbers_in(const char *text, uint64_t *numbers, uint32_t most)
{
    uint32_t count = 0;
    char *end;
    for (; count < most; count++, text = end) {
        numbers[count] = strtoull(text, &end, 10);
        if (end == text)
            break;
    }
    return count;
}

/* Operations, transmissions, timeouts, bytes sent, bytes received, and times in ms: queued, on its way, in all. */
static void add_operation(struct ensio_surroundings *row, const char *name, const uint64_t numbers[8])
{
    row->nfs_retransmissions += numbers[1] > numbers[0] ? numbers[1] - numbers[0] : 0;
    if (strncmp(name, "READ:", 5) == 0) {
        row->nfs_reads += numbers[0];
        row->nfs_read_ms += numbers[7];
    } else if (strncmp(name, "WRITE:", 6) == 0) {
        row->nfs_writes += numbers[0];
        row->nfs_write_ms += numbers[7];
    } else if (strncmp(name, "COMMIT:", 7) == 0) {
        row->nfs_commits += numbers[0];
    }
}

static int nfs_line(char *line, void *state)
{
    struct nfs *nfs = state;
    uint64_t numbers[8];
    if (strncmp(line, "device ", 7) == 0) {
        nfs->is_nfs = strstr(line, " with fstype nfs") != NULL;
        nfs->in_operations = 0;
    }
    if (!nfs->is_nfs)
        return 0;
    line += strspn(line, " \t");
    const char *colon = strchr(line, ':');
    if (strncmp(line, "per-op statistics", 17) == 0) {
        nfs->in_operations = 1;
    } else if (nfs->in_operations && colon && numbers_in(colon + 1, numbers, 8) == 8) {
        add_operation(nfs->row, line, numbers);
    } else if (strncmp(line, "bytes:", 6) == 0 && numbers_in(line + 6, numbers, 6) == 6) {
        /* read and written by calls, by direct calls, and from and to the server */
        nfs->row->nfs_read_bytes += numbers[4];
        nfs->row->nfs_write_bytes += numbers[5];
    }
    return 0;
}

uint32_t ensio_read_nfs(struct ensio_surroundings *row)
{
    static char path[ENSIO_PATH_ROOM];
    struct ensio_string whole = ensio_string_in(path, sizeof path);
    struct nfs nfs = {.row = row};
    if (!ensio_mounted.nfs)
        return 0;
    ensio_add(&whole, ensio_sources_root);
    ensio_add(&whole, "/proc/self/mountstats");
    if (!whole.full)
        ensio_private_each_line(path, nfs_line, &nfs);
    return ENSIO_READ_NFS;
}

struct targets {
    const char *folder, *leaf;
    void (*each)(const char *text, struct ensio_surroundings *row);
    struct ensio_surroundings *row;
    int found;
};

/* If the first one cannot be read, the others cannot either. */
static int read_target(int fd, const struct dirent64 *entry, void *state)
{
    static char path[ENSIO_PATH_ROOM];
    struct targets *const all = state;
    if (entry->d_name[0] == '.' || entry->d_type != DT_DIR)
        return 0;
    struct ensio_string whole = ensio_string_in(path, sizeof path);
    const char *const pieces[] = {all->folder, "/", entry->d_name, "/", all->leaf};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
        ensio_add(&whole, pieces[i]);
    const char *text = whole.full ? NULL : ensio_source_text(path);
    if (text)
        all->each(text, all->row);
    return !text || ++all->found == MOST_TARGETS;
}

/* Reads a file in every folder of a folder: the number of files read. */
static int each_target(const char *folder, const char *leaf,
                       void (*each)(const char *text, struct ensio_surroundings *), struct ensio_surroundings *row)
{
    static char path[ENSIO_PATH_ROOM];
    struct targets all = {folder, leaf, each, row, 0};
    struct ensio_string whole = ensio_string_in(path, sizeof path);
    ensio_add(&whole, ensio_sources_root);
    ensio_add(&whole, folder);
    if (!whole.full)
        ensio_private_each_entry(path, read_target, &all);
    return all.found;
}

/* Where versions of Lustre keep a file: /sys for single values, else debugfs, which users other than root may not read;
 * before version 2.12 in /proc. */
static uint32_t read_lustre(const char *const folders[2], const char *leaf,
                            void (*each)(const char *text, struct ensio_surroundings *row),
                            struct ensio_surroundings *row, uint32_t read)
{
    if (!ensio_mounted.lustre)
        return 0;
    return each_target(folders[0], leaf, each, row) || each_target(folders[1], leaf, each, row) ? read : 0;
}

static void add_dirty(const char *text, struct ensio_surroundings *row)
{
    row->lustre_dirty_bytes += strtoull(text, NULL, 10);
}

uint32_t ensio_read_lustre_dirty(struct ensio_surroundings *row)
{
    static const char *const folders[] = {"/sys/fs/lustre/osc", "/proc/fs/lustre/osc"};
    return read_lustre(folders, "cur_dirty_bytes", add_dirty, row, ENSIO_READ_LUSTRE_DIRTY);
}

/* Lines such as "hits                      12 samples [pages]". */
static void add_ahead(const char *text, struct ensio_surroundings *row)
{
    const char *hits = text, *misses = text;
    row->lustre_ahead_hits += ensio_number_after(&hits, "\nhits ");
    row->lustre_ahead_misses += ensio_number_after(&misses, "\nmisses ");
}

uint32_t ensio_read_lustre_ahead(struct ensio_surroundings *row)
{
    static const char *const folders[] = {"/sys/kernel/debug/lustre/llite", "/proc/fs/lustre/llite"};
    return read_lustre(folders, "read_ahead_stats", add_ahead, row, ENSIO_READ_LUSTRE_AHEAD);
}

/* Behind a line "pages per rpc", a line for each class of size, "16:  3  50  75  |  2  20  40": RPCs of reads with at
 * most 16 pages, and of writes. The next histogram follows an empty line. */
static void add_rpcs(const char *text, struct ensio_surroundings *row)
{
    const char *line = strstr(text, "\npages per rpc");
    while (line && (line = strchr(line + 1, '\n')) != NULL) {
        char *end;
        const uint64_t pages = strtoull(line + 1, &end, 10);
        const char *writes = *end == ':' ? strchr(end, '|') : NULL;
        if (end == line + 1 || !writes)
            break;
        const uint64_t reads = strtoull(end + 1, NULL, 10), written = strtoull(writes + 1, NULL, 10);
        row->lustre_read_rpcs += reads;
        row->lustre_read_pages += reads * pages;
        row->lustre_write_rpcs += written;
        row->lustre_write_pages += written * pages;
    }
}

uint32_t ensio_read_lustre_rpcs(struct ensio_surroundings *row)
{
    static const char *const folders[] = {"/sys/kernel/debug/lustre/osc", "/proc/fs/lustre/osc"};
    return read_lustre(folders, "rpc_stats", add_rpcs, row, ENSIO_READ_LUSTRE_RPCS);
}
