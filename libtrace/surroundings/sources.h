/* sources.h: files of the kernel with counters of I/O.
 *
 * Each function reads one file or several alike, adds the counters to a row, and returns which of its members it set
 * (ENSIO_READ_...; 0: the file is not there, or this user may not read it). The caller holds the lock and is in
 * ensio_with_private_files. */
#ifndef ENSIO_SURROUNDINGS_SOURCES_H
#define ENSIO_SURROUNDINGS_SOURCES_H

#include <ensio/event.h>

/* Put before the names of all files, by tests. */
extern const char *ensio_sources_root;

/* The counters of a process or of one of its threads. */
uint32_t ensio_read_io(const char *path, struct ensio_surroundings *row);
uint32_t ensio_read_process(struct ensio_surroundings *row);
uint32_t ensio_read_memory(struct ensio_surroundings *row);
uint32_t ensio_read_pressure(struct ensio_surroundings *row);
uint32_t ensio_read_cgroup(struct ensio_surroundings *row);
uint32_t ensio_read_cgroup_pressure(struct ensio_surroundings *row);
uint32_t ensio_read_nfs(struct ensio_surroundings *row);
uint32_t ensio_read_lustre_dirty(struct ensio_surroundings *row);
uint32_t ensio_read_lustre_ahead(struct ensio_surroundings *row);
uint32_t ensio_read_lustre_rpcs(struct ensio_surroundings *row);

/* Reads the beginning of a small file as a text with a newline before and a NUL behind it, valid until the next call;
 * NULL if it cannot be read. */
const char *ensio_source_text(const char *path);

/* The number behind a word that begins a line; 0: none. Moves `*text` there. */
uint64_t ensio_number_after(const char **text, const char *word);

#endif
