/* process_summary.h: this process's summary, as input to the merged one. */
#ifndef ENSIO_JOBFILE_PROCESS_SUMMARY_H
#define ENSIO_JOBFILE_PROCESS_SUMMARY_H

#include "merged_summary.h"

#include <time/clock_line.h>

/* Call these after ensio_collect_begin. */

/* Whether this process's cells go into the job file: not if they follow from its events. */
int ensio_collect_has_summary(void);

/* The head of the spool when it was collected. */
const struct ensio_spool *ensio_collect_head(void);

/* The clock of a process by its readings, with nanoseconds a tick; `span_ns`: how far the readings are apart. 0: they
 * are not sound. */
double ensio_collect_rate(const struct ensio_spool *head, uint64_t *span_ns);

/* The same for the collected process, for a job of one. */
struct ensio_clock_line ensio_collect_line(void);

/* Adds this process's cells, and keeps sums by function for its record: 0, or minus an errno. */
int ensio_collect_summary(struct ensio_merged *merged, const struct ensio_clock_line *line);

/* The coded summary of all processes, or NULL without memory. It is valid until the record is made. */
const uint8_t *ensio_collect_code(const struct ensio_merged *merged, uint32_t *length, uint32_t *coded);

#endif
