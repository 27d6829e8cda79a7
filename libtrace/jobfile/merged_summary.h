/* merged_summary.h: the summary of several processes, cell by cell, as a job file holds it (ensio/jobfile.h).
 *
 * Merging adds one summary to another. Its size grows with the number of kinds of calls, not with the number of
 * processes. With too many kinds, cells no longer distinguish ordinals, then no longer sizes, as in the summary of a
 * process. */
#ifndef ENSIO_JOBFILE_MERGED_SUMMARY_H
#define ENSIO_JOBFILE_MERGED_SUMMARY_H

#include <core/memory.h>

#include <ensio/jobfile.h>

#define ENSIO_MERGED_CELLS 4096 /* at most */

struct ensio_merged {
    struct ensio_array cells;  /* struct ensio_job_cell */
    struct ensio_array blocks; /* counts of histogram bins */
    struct ensio_array texts;  /* text entries of paths, concatenated */
    struct ensio_array paths;  /* by file number, from 1: position of its entry (uint32_t) */
    uint16_t *slots;           /* hash table of cell keys: numbers of cells, from 1 */
    uint32_t level;            /* as in struct ensio_job_summary */
    uint32_t processes;
};

/* Begins an empty summary: 0, or -1 without memory. It must be freed in either case. */
int ensio_merged_begin(struct ensio_merged *merged);
void ensio_merged_free(struct ensio_merged *merged);

/* The number of a path; 0 for NULL or without memory. Equal paths get one number when the summary is compacted. */
uint32_t ensio_merged_path(struct ensio_merged *merged, const char *path, uint32_t length);

/* Adds a cell with its bin counts in `blocks`. Its files have numbers of this summary. 0, or -1 without memory. */
int ensio_merged_add(struct ensio_merged *merged, const struct ensio_job_cell *cell, const uint64_t *blocks);

/* Adds a call to the longest calls of a cell, if it is one of them. */
void ensio_merged_longest(struct ensio_job_cell *cell, const struct ensio_job_longest *call);

/* Adds a packed summary: 0, or -1 without memory or if it is malformed. */
int ensio_merged_merge(struct ensio_merged *merged, const uint8_t *packed, uint64_t length);

/* Gives equal paths one number and removes unused ones: 0, or -1 without memory. */
int ensio_merged_compact(struct ensio_merged *merged);

/* Appends the packed summary, as a job file holds it, to `to`: 0, or -1 without memory. */
int ensio_merged_pack(const struct ensio_merged *merged, struct ensio_array *to);

#endif
