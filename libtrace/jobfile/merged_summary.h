/* merged_summary.h: what the calls of several processes add up to, cell by cell, as it goes into a job file
 * (ensio/jobfile.h).
 *
 * Two of them are put together into the first. What they hold grows with the kinds of calls, not with the number of
 * processes; where there are too many kinds, ordinals are told apart no more, then sizes neither, as in the summary of
 * a process. */
#ifndef ENSIO_JOBFILE_MERGED_SUMMARY_H
#define ENSIO_JOBFILE_MERGED_SUMMARY_H

#include <core/memory.h>

#include <ensio/jobfile.h>

#define ENSIO_MERGED_CELLS 4096 /* no more */

struct ensio_merged {
    struct ensio_array cells;  /* struct ensio_job_cell */
    struct ensio_array blocks; /* of counts */
    struct ensio_array texts;  /* text entries of paths, one behind the other */
    struct ensio_array paths;  /* of each file number, from 1 on, where its entry begins (uint32_t) */
    uint16_t *slots;           /* by the hash of a cell's key: its number, from 1 */
    uint32_t level;            /* as in struct ensio_job_summary */
    uint32_t processes;
};

/* Begins an empty one: 0, or -1 where there is no memory; to be freed in either case. */
int ensio_merged_begin(struct ensio_merged *merged);
void ensio_merged_free(struct ensio_merged *merged);

/* The number of a path: 0 for NULL; also 0 where there is no memory for it. Tidying gives equal paths one number. */
uint32_t ensio_merged_path(struct ensio_merged *merged, const char *path, uint32_t length);

/* Adds a cell, whose blocks lie in `blocks`, and whose files have this summary's numbers: 0, or -1 where there is no
 * memory. */
int ensio_merged_add(struct ensio_merged *merged, const struct ensio_job_cell *cell, const uint64_t *blocks);

/* Adds a call to the longest of a cell, if it is one. */
void ensio_merged_longest(struct ensio_job_cell *cell, const struct ensio_job_longest *call);

/* Adds one that was packed: 0, or -1 where there is no memory, or it makes no sense. */
int ensio_merged_merge(struct ensio_merged *merged, const uint8_t *packed, uint64_t length);

/* Gives equal paths one number, and lets go of those that no call is about any more: 0, or -1 where there is no memory.
 */
int ensio_merged_compact(struct ensio_merged *merged);

/* All of it in one piece, as a job file has it, appended to `to`: 0, or -1 where there is no memory. */
int ensio_merged_pack(const struct ensio_merged *merged, struct ensio_array *to);

#endif
