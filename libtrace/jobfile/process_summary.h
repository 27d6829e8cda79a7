/* process_summary.h: this process's summary, as a part of that of all processes. */
#ifndef ENSIO_JOBFILE_PROCESS_SUMMARY_H
#define ENSIO_JOBFILE_PROCESS_SUMMARY_H

#include "merged_summary.h"

#include <time/clock_line.h>

/* After ensio_collect_begin. */

/* Whether this process's cells go into the job file: unless every event does, from which they follow. */
int ensio_collect_has_summary(void);

/* The head of the spool, as it was collected. */
const struct ensio_spool *ensio_collect_head(void);

/* Adds what this process's calls add up to, and notes for its record what those of each function do: 0, or minus an
 * errno. */
int ensio_collect_summary(struct ensio_merged *merged, const struct ensio_clock_line *line);

/* The summary of all processes, coded; NULL where there is no memory. It stays until the record is made. */
const uint8_t *ensio_collect_code(const struct ensio_merged *merged, uint32_t *length, uint32_t *coded);

#endif
