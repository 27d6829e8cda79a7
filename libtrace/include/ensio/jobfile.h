/* jobfile.h: the layout of a job file, into which the ranks of a job put their spools at MPI_Finalize.
 *
 * This header and event.h are the only description of it; Python parses both. A job file is
 *
 *     struct ensio_job      at byte 0
 *     data                  coded events, and the contents of other windows, of all processes in any order
 *     records               one behind the other: for each process a struct ensio_job_process with what belongs to it
 *
 * A record says all that there is about one process, and where its data are. It consists of
 *
 *     struct ensio_job_process
 *     the name of its spool, without a closing NUL
 *     its text entries, coded as a text
 *     struct ensio_job_window, one for each window of its spool but those of text
 *     struct ensio_job_data, one for each piece of data, in the order of the windows
 *
 * without gaps. docs/trace-format.md says how events and texts are coded. Keep to the rules of event.h.
 */
#ifndef ENSIO_JOBFILE_H
#define ENSIO_JOBFILE_H

#include "event.h"

#include <stdint.h>

#define ENSIO_JOB_MAGIC 0x424f4a4f49534e45ULL /* the bytes "ENSIOJOB" on a little-endian machine */
#define ENSIO_JOB_VERSION 1
#define ENSIO_JOB_PROCESS_MAGIC 0x434f5250U /* the bytes "PROC" */
#define ENSIO_BLOCK_MAGIC 0x4b434f42U       /* the bytes "BOCK" */

/* Coding of events. */
#define ENSIO_BLOCK_EVENTS 16384 /* a block has no more */
#define ENSIO_BLOCK_TEMPLATES 256
#define ENSIO_CALL_SLOTS 256  /* call numbers that differ by a multiple of this share what is remembered of calls */
#define ENSIO_FILE_SLOTS 1024 /* the same of files */

/* The shape of an event: which of its values are given because they are not what was expected. */
#define ENSIO_GIVEN_FILE 1      /* not that of the event before */
#define ENSIO_GIVEN_REQUESTED 2 /* not that of the last event of the same call */
#define ENSIO_GIVEN_MOVED 4     /* not what was requested */
#define ENSIO_OFFSET_PLACES 24  /* these two bits say where the offset comes from: */
#define ENSIO_OFFSET_NONE 0     /* it is -1 */
#define ENSIO_OFFSET_FOLLOWS 8  /* where the last event of the same file ended */
#define ENSIO_OFFSET_STRIDES 16 /* as far from there as the last time that the distance was given */
#define ENSIO_OFFSET_GIVEN 24   /* the distance is given */

/* The head of a job file. */
struct ensio_job {
    uint64_t magic;
    uint32_t version;
    uint32_t event_bytes;     /* sizeof(struct ensio_event) */
    uint32_t spool_version;   /* ENSIO_SPOOL_VERSION, of what the records hold */
    uint32_t processes;       /* number of records */
    uint64_t bytes;           /* length of the file */
    uint64_t records;         /* from the start of the file to the first record */
    uint64_t shared_bytes;    /* length of the texts of the first record, uncoded: all other texts lean on them */
};

/* The head of a record. */
struct ensio_job_process {
    uint32_t magic;
    uint32_t bytes;       /* length of the record, this head included */
    uint32_t checksum;    /* CRC-32 of the record from the next member on */
    uint32_t name_bytes;
    uint32_t text_bytes;  /* uncoded */
    uint32_t coded_bytes; /* of the texts */
    uint32_t windows;
    uint32_t data;
    struct ensio_spool spool; /* the head of the spool, as it was then */
};

/* A window of the spool. */
struct ensio_job_window {
    uint64_t position; /* in the spool: from its start to the window */
    uint32_t taken;    /* events in the job file; of other windows: bytes behind the window's head */
    uint32_t data;     /* pieces of data */
    struct ensio_window window; /* its head */
};

/* A piece of data of a window. */
struct ensio_job_data {
    uint64_t position; /* from the start of the job file */
    uint32_t bytes;
    uint32_t count;    /* of an events window: events in this block; of others: bytes, uncoded */
};

/* The head of a block of events, which are of one thread, in the order of their completion. Behind it lie the templates, then a
 * byte for each event, the number of its template, and then the columns. */
struct ensio_block {
    uint32_t magic;
    uint32_t checksum; /* CRC-32 of the block from the next member on */
    uint32_t events;
    uint32_t templates;
    uint32_t start_bytes; /* lengths of the columns, which come in this order */
    uint32_t duration_bytes;
    uint32_t file_bytes;
    uint32_t requested_bytes;
    uint32_t moved_bytes;
    uint32_t offset_bytes;
};

/* What many events have in common. */
struct ensio_template {
    uint16_t call;
    uint8_t depth;
    uint8_t flags;
    uint32_t shape;
};

#endif
