#include "sources.h"

#include <core/bounded_string.h>
#include <core/private_files.h>
#include <core/rawsys.h>
#include <core/settings.h>
#include <spool/mounts.h>

#include <stdlib.h>
#include <string.h>

#define TEXT_ROOM 8192

const char *ensio_sources_root = "";

const char *ensio_source_text(const char *path)
{
    static char text[TEXT_ROOM] = "\n", name[ENSIO_PATH_ROOM];
    struct ensio_string whole = ensio_string_in(name, sizeof name);
    ensio_add(&whole, ensio_sources_root);
    ensio_add(&whole, path);
    const int fd = whole.full ? -1 : ensio_private_open(name, O_RDONLY, 0);
    if (fd < 0)
        return NULL;
    const long got = ensio_raw_read(fd, text + 1, sizeof text - 2);
    ensio_raw_close(fd);
    text[got > 0 ? got + 1 : 1] = '\0';
    return got > 0 ? text : NULL;
}

uint64_t ensio_number_after(const char **text, const char *word)
{
    const char *found = strstr(*text, word);
    if (!found)
        return 0;
    char *end;
    const uint64_t number = strtoull(found + strlen(word), &end, 10);
    *text = end;
    return number;
}

uint32_t ensio_read_process(struct ensio_surroundings *row)
{
    return ensio_read_io("/proc/self/io", row);
}

uint32_t ensio_read_io(const char *path, struct ensio_surroundings *row)
{
    const char *text = ensio_source_text(path);
    if (!text)
        return 0;
    row->read_by_calls = ensio_number_after(&text, "\nrchar:");
    row->written_by_calls = ensio_number_after(&text, "\nwchar:");
    row->read_calls = ensio_number_after(&text, "\nsyscr:");
    row->write_calls = ensio_number_after(&text, "\nsyscw:");
    row->read_bytes = ensio_number_after(&text, "\nread_bytes:");
    row->write_bytes = ensio_number_after(&text, "\nwrite_bytes:");
    row->cancelled_write_bytes = ensio_number_after(&text, "\ncancelled_write_bytes:");
    return ENSIO_READ_PROCESS;
}

/* /proc/vmstat has the same levels, but adds up counters of all processors for them. */
uint32_t ensio_read_memory(struct ensio_surroundings *row)
{
    const char *text = ensio_source_text("/proc/meminfo");
    if (!text)
        return 0;
    row->available_bytes = 1024 * ensio_number_after(&text, "\nMemAvailable:");
    row->cached_bytes = 1024 * ensio_number_after(&text, "\nCached:");
    row->dirty_bytes = 1024 * ensio_number_after(&text, "\nDirty:");
    row->writeback_bytes = 1024 * ensio_number_after(&text, "\nWriteback:");
    return ENSIO_READ_MEMORY;
}

/* A line for `some` and one for `full`, each with the total time in microseconds at its end. */
static int take_pressure(const char *text, uint64_t *some_us, uint64_t *full_us)
{
    if (!text || !(text = strstr(text, "\nsome ")))
        return 0;
    *some_us = ensio_number_after(&text, " total=");
    const char *full = strstr(text, "\nfull ");
    *full_us = full ? ensio_number_after(&full, " total=") : 0;
    return 1;
}

uint32_t ensio_read_pressure(struct ensio_surroundings *row)
{
    return take_pressure(ensio_source_text("/proc/pressure/io"), &row->some_us, &row->full_us) ? ENSIO_READ_PRESSURE
                                                                                               : 0;
}

/* Whether this folder is a cgroup other than the root, which has no file of this name. */
static int is_cgroup(const char *folder)
{
    static char path[ENSIO_PATH_ROOM];
    struct ensio_string whole = ensio_string_in(path, sizeof path);
    ensio_add(&whole, folder);
    ensio_add(&whole, "/cgroup.type");
    return !whole.full && ensio_source_text(path);
}

/* The folder of this process's cgroup; "": it is the root, with the counters of the whole node, or not of version 2. In
 * a container, the mount may begin at the cgroup itself. */
static const char *own_cgroup(void)
{
    static char own[ENSIO_PATH_ROOM];
    static int known;
    if (known || !*ensio_mounted.cgroup)
        return own;
    const char *text = ensio_source_text("/proc/self/cgroup"), *line = text ? strstr(text, "\n0::/") : NULL;
    struct ensio_string path = ensio_string_in(own, sizeof own);
    known = 1;
    ensio_add(&path, ensio_mounted.cgroup);
    if (line)
        ensio_add_bytes(&path, line + 4, (uint32_t)strcspn(line + 4, "\n"));
    if (path.full || !is_cgroup(own))
        own[strlen(ensio_mounted.cgroup)] = '\0';
    if (!is_cgroup(own))
        *own = '\0';
    return own;
}

/* The text of a file of this process's cgroup, or NULL. */
static const char *in_cgroup(const char *leaf)
{
    static char path[ENSIO_PATH_ROOM];
    struct ensio_string whole = ensio_string_in(path, sizeof path);
    ensio_add(&whole, own_cgroup());
    ensio_add(&whole, leaf);
    return *own_cgroup() && !whole.full ? ensio_source_text(path) : NULL;
}

uint32_t ensio_read_cgroup_pressure(struct ensio_surroundings *row)
{
    const char *text = in_cgroup("/io.pressure");
    return take_pressure(text, &row->cgroup_some_us, &row->cgroup_full_us) ? ENSIO_READ_CGROUP_PRESSURE : 0;
}

/* A line for each device: "8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0". */
uint32_t ensio_read_cgroup(struct ensio_surroundings *row)
{
    const char *text = in_cgroup("/io.stat");
    if (!text)
        return 0;
    while (strstr(text, " rbytes=")) {
        row->cgroup_read_bytes += ensio_number_after(&text, " rbytes=");
        row->cgroup_write_bytes += ensio_number_after(&text, " wbytes=");
        row->cgroup_reads += ensio_number_after(&text, " rios=");
        row->cgroup_writes += ensio_number_after(&text, " wios=");
    }
    return ENSIO_READ_CGROUP;
}
