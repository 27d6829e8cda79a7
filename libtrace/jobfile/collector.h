/* collector.h: the contents of this process's spool, coded for the job file, piece by piece.
 *
 * A piece is in memory, then written by whoever asked for it, who says where. Events are taken as far as they are
 * whole: of each window those before its first empty slot. What is recorded later stays in the spool, and so the spool
 * itself, unless at the process's end everything in it is in the job file. All functions but the first and the last are
 * for the thread that collects. */
#ifndef ENSIO_JOBFILE_COLLECTOR_H
#define ENSIO_JOBFILE_COLLECTOR_H

#include <stdint.h>

#define ENSIO_PIECE_BYTES (1 << 20)   /* about */
#define ENSIO_SHARED_BYTES (64 << 10) /* of the first rank's texts, on which those of the others lean: no more */

/* Begins: 0, or minus an errno. */
int ensio_collect_begin(void);

/* The texts of this process: what others may lean on. */
const uint8_t *ensio_collect_texts(uint32_t *length);

/* The next piece; its length is 0 when there are no more. It stays until the next call. */
const uint8_t *ensio_collect_piece(uint32_t *length);

/* Says where in the job file the last piece will lie. */
void ensio_collect_placed(uint64_t position);

/* The record (ensio/jobfile.h) of this process, or NULL where there is no memory for it. `shared` are the texts to lean
 * on; the process whose texts they are leans on nothing. */
const uint8_t *ensio_collect_record(const uint8_t *shared, uint32_t shared_bytes, uint32_t *length);

/* Ends; `written`: the job file is whole. */
void ensio_collect_end(int written);

/* Whether the spool holds nothing any more that is not in a job file. The caller holds the lock. */
int ensio_is_in_job_file(void);

#endif
