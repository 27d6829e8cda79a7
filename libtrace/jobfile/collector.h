/* collector.h: codes the contents of this process's spool for the job file, piece by piece.
 *
 * A piece lies in memory until the caller has written it and says where. Of each window, the events before its first
 * empty slot are taken. Later events stay in the spool, and the spool remains unless the job file holds all of it when
 * the process ends. Only the collecting thread calls these functions, except the first and the last. */
#ifndef ENSIO_JOBFILE_COLLECTOR_H
#define ENSIO_JOBFILE_COLLECTOR_H

#include <stdint.h>

#define ENSIO_PIECE_BYTES (1 << 20) /* approximately */
/* limit of the first rank's texts that serve as dictionary for the texts of the others */
#define ENSIO_SHARED_BYTES (64 << 10)

/* Begins: 0, or minus an errno. */
int ensio_collect_begin(void);

/* The texts of this process, as a dictionary for others. */
const uint8_t *ensio_collect_texts(uint32_t *length);

/* The next piece, valid until the next call. Its length is 0 at the end. */
const uint8_t *ensio_collect_piece(uint32_t *length);

/* Sets the position of the last piece in the job file. */
void ensio_collect_placed(uint64_t position);

/* The record (ensio/jobfile.h) of this process, or NULL without memory. `shared` is the dictionary for its texts; the
 * process that it comes from uses none. */
const uint8_t *ensio_collect_record(const uint8_t *shared, uint32_t shared_bytes, uint32_t *length);

/* The dictionary, coded with its sum, valid until the next piece: the copy that lies behind the records. */
const uint8_t *ensio_collect_copy(const uint8_t *shared, uint32_t shared_bytes, uint32_t *length);

/* Ends; `written`: the job file is complete. */
void ensio_collect_end(int written);

/* Whether the spool was collected, and the job file written. The caller holds the lock. */
int ensio_collected(void);

/* Whether a job file holds everything in the spool. The caller holds the lock. */
int ensio_is_in_job_file(void);

#endif
