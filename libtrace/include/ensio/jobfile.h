/* jobfile.h: the layout of a job file, into which the ranks of a job put their spools at MPI_Finalize, and a process
 * without MPI its own when it ends.
 *
 * This header and event.h are the only definition of it; Python parses both. A job file consists of
 *
 *     struct ensio_job      at byte 0
 *     data                  coded events, and the contents of other windows, of all processes in any order
 *     the summary           of all processes, coded as a text; missing if the data hold every event
 *     records               for each process a struct ensio_job_process with what belongs to it, contiguous
 *     a copy                of the texts that other records lean on, coded as a text with a sum; missing if none do
 *
 * A record describes one process and locates its data. It consists of
 *
 *     struct ensio_job_process
 *     the name of its spool, without a closing NUL
 *     struct ensio_job_window, one for each window of its spool except those of text and of the summary
 *     struct ensio_job_data, one for each piece of data, in the order of the windows
 *     struct ensio_job_call, one for each function that it called, if it is in the summary
 *     its text entries, coded as a text with a sum
 *
 * without gaps. The contents of other windows are coded as texts with sums, too: the CRC-32 (uint32_t) of the coded
 * text, and that. The summary, before coding, consists of
 *
 *     struct ensio_job_summary
 *     struct ensio_job_cell, one for each kind of calls
 *     blocks of ENSIO_BLOCK_BINS counts (uint64_t), numbered from 1 on
 *     text entries of kind file, whose numbers are those in the longest calls
 *
 * docs/reference/formats/job-file.md explains the coding of events and texts. Follow the rules of event.h.
 */
#ifndef ENSIO_JOBFILE_H
#define ENSIO_JOBFILE_H

#include "event.h"

#include <stdint.h>

#define ENSIO_JOB_MAGIC 0x424f4a4f49534e45ULL /* the bytes "ENSIOJOB" on a little-endian machine */
#define ENSIO_JOB_VERSION 4
#define ENSIO_JOB_PROCESS_MAGIC 0x434f5250U /* the bytes "PROC" */
#define ENSIO_BLOCK_MAGIC 0x4b434f42U       /* the bytes "BOCK" */

/* From the start of a window to the blocks in it, behind ENSIO_PART_EVENTS slots. */
#define ENSIO_BLOCKS_BYTES 49216

/* Coding of events. */
#define ENSIO_BLOCK_EVENTS 16384 /* events of a block, at most */
#define ENSIO_BLOCK_TEMPLATES 256
/* call numbers that differ by a multiple of this share a prediction of the requested bytes */
#define ENSIO_CALL_SLOTS 256
#define ENSIO_FILE_SLOTS 1024 /* file numbers likewise share a prediction of the offset */

/* The shape of an event: the values that are coded because they differ from the prediction. */
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
    uint32_t event_bytes;   /* sizeof(struct ensio_event) */
    uint32_t spool_version; /* ENSIO_SPOOL_VERSION, of what the records hold */
    uint32_t processes;     /* number of records */
    uint64_t bytes;         /* length of the file without the copy */
    uint64_t records;       /* from the start of the file to the first record */
    uint64_t shared_bytes;  /* length of the texts of the first record, uncoded: all other texts lean on them */
    uint64_t summary;       /* from the start of the file to the summary; 0: no process is in it */
    uint32_t summary_coded; /* its length, and the CRC-32 of that */
    uint32_t summary_checksum;
    uint32_t summary_bytes; /* its length, uncoded */
    /* 1: of windows that a spool still holds, events from slot `taken` on are there only */
    uint32_t rest_in_spool;
    uint32_t checksum;    /* CRC-32 of the members before */
    uint32_t recorder_us; /* of the only process: time of the recorder at its start and end, up to here; 0: unknown */
};

/* The head of a record. */
struct ensio_job_process {
    uint32_t magic;
    uint32_t bytes;    /* length of the record, this head included */
    uint32_t checksum; /* CRC-32 of the record from the next member on, without the texts */
    uint32_t name_bytes;
    uint32_t text_bytes;  /* uncoded */
    uint32_t coded_bytes; /* of the texts, with their sum */
    uint32_t windows;
    uint32_t data;
    uint32_t calls;
    uint32_t summarised; /* 1: the cells in those windows that begin before spool.allocated_bytes are in the summary */
    struct ensio_spool spool; /* the head of the spool, as it was then */
};

/* A window of the spool. */
struct ensio_job_window {
    uint64_t position; /* in the spool: from its start to the window */
    uint32_t taken;    /* slots whose events are in the job file; of other windows: bytes behind the window's head */
    uint32_t data;     /* pieces of data */
    struct ensio_window window; /* its head */
};

/* A piece of data of a window. */
struct ensio_job_data {
    uint64_t position; /* from the start of the job file */
    uint32_t bytes;
    uint32_t count; /* of an events window: events in this block; of others: bytes, uncoded */
};

/* Sums and maximum of the calls of one function in one process. */
struct ensio_job_call {
    uint16_t call;
    uint16_t reserved;
    uint32_t reserved2;
    uint64_t count;
    uint64_t errors;
    uint64_t moved; /* bytes */
    uint64_t time_ns;
    uint64_t inner_ns; /* the part of it that was spent in recorded calls inside */
    uint64_t max_ns;
};

/* The head of the summary. */
struct ensio_job_summary {
    uint32_t processes; /* processes in the summary */
    uint32_t cells;
    uint32_t blocks;
    uint32_t text_bytes;
    uint32_t level; /* 0: sizes and ordinals are distinguished in all cells; 1: ordinals are not; 2: neither */
    uint32_t reserved;
};

/* One of the longest calls of a cell. */
struct ensio_job_longest {
    int64_t start_ns; /* since 1970-01-01 UTC, by the clock of rank 0's node */
    uint64_t duration_ns;
    int64_t offset;
    uint64_t requested;
    int64_t moved; /* as in events */
    uint32_t rank;
    uint32_t file;   /* number of a text entry of the summary; 0: none */
    uint16_t thread; /* of its process */
    uint8_t depth;
    uint8_t flags;
    uint32_t reserved;
};

/* Sums and extremes of the calls of one kind, size class and ordinal class in all processes. Members with names of
 * struct ensio_cell have the same meaning; times since 1970 are by the clock of rank 0's node. */
struct ensio_job_cell {
    uint16_t call;
    uint8_t size_class;
    uint8_t ordinal_class;
    uint32_t longest; /* used entries of `largest` */
    uint64_t count;
    uint64_t errors;
    uint64_t moved;
    uint64_t time_ns;
    uint64_t inner_ns;
    uint64_t nested_count;
    uint64_t carried_moved;
    uint64_t nested_ns;
    uint64_t without_bin;
    uint64_t min_ns;
    uint64_t max_ns;
    uint64_t min_requested;
    uint64_t max_requested;
    int64_t first_start_ns; /* since 1970 */
    int64_t last_end_ns;
    double mean_ns;
    double m2; /* sums of powers of the deviations from the mean */
    double m3;
    double m4;
    uint32_t blocks[ENSIO_OCTAVES];
    /* The longest first; of equal ones the earlier, then that of the lower rank. */
    struct ensio_job_longest largest[ENSIO_LARGEST];
};

/* The head of a block of events of one thread, in order of completion. It is followed by the templates, a byte for each
 * event with the number of its template, and the columns. */
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

/* The part that many events share. */
struct ensio_template {
    uint16_t call;
    uint8_t depth;
    uint8_t flags;
    uint16_t shape;
    uint16_t site;
};

#endif
