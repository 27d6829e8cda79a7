/* stream.h: the messages between ensio and ensio-otf2, over pipes. Both sides have the same version and run on the same
 * machine, so integers are in its byte order. docs/reference/formats/other-tools.md describes them.
 *
 * A stream is a sequence of messages: this head, followed by `bytes` bytes. Each text ends with a NUL. */
#ifndef ENSIO_OTF2_STREAM_H
#define ENSIO_OTF2_STREAM_H

#include <stddef.h>
#include <stdint.h>

struct ensio_message {
    uint32_t kind;
    uint32_t count; /* number of items, as the kind defines */
    uint64_t bytes;
};

/* Input for writing, in this order. Everything but the events is kept in memory until the end. */
#define ENSIO_OTF2_SETTINGS 1 /* struct ensio_otf2_settings */
#define ENSIO_OTF2_RUN 2      /* count 1: metadata of the run (JSON) */
/* count calls: name, layer, kind of operation, paradigm, letters (ENSIO_OTF2_LETTERS) */
#define ENSIO_OTF2_CALLS 3
#define ENSIO_OTF2_FILES 4      /* count paths; file 0 is none */
#define ENSIO_OTF2_PROPERTIES 5 /* count properties of files: file number, name, value */
#define ENSIO_OTF2_HOSTS 6      /* count tasks: the host of each rank */
#define ENSIO_OTF2_PROCESSES 7  /* count processes: its rank, its metadata (JSON) */
#define ENSIO_OTF2_NAMES 8      /* count names of phases and regions */
/* Columns are contiguous, each padded to a multiple of 8 bytes. */
#define ENSIO_OTF2_REGIONS 9 /* count phases and regions, by rank and start; columns as those of RegionTable */
#define ENSIO_OTF2_EVENTS 10 /* count calls, by rank; columns as those of Events, without the site */
#define ENSIO_OTF2_END 11    /* end of input */
/* Before the end: count counters of the kernel (name, unit, meaning, "sum" or "level"), and the samples, by time. */
#define ENSIO_OTF2_COUNTERS 12
#define ENSIO_OTF2_SAMPLES 13 /* count struct ensio_otf2_sample */

/* Letters of a call: it returns before its operation ends; all ranks make it; it removes a file; it is a barrier. */
#define ENSIO_OTF2_NON_BLOCKING 'n'
#define ENSIO_OTF2_COLLECTIVE 'c'
#define ENSIO_OTF2_DELETES 'd'
#define ENSIO_OTF2_BARRIER 'b'

struct ensio_otf2_settings {
    uint64_t origin_unix_ns;
    uint32_t ranks_per_location; /* 1: a location is a thread of a rank */
    uint32_t reserved;
};

/* Output of reading: definitions are messages of texts, whose first word is their kind (reader.h); then blocks of
 * rows. */
#define ENSIO_OTF2_DEFINITION 32  /* count texts */
#define ENSIO_OTF2_ROWS 33        /* count struct ensio_otf2_row */
#define ENSIO_OTF2_ALIVE 34       /* no output yet, but progress */
#define ENSIO_OTF2_SAMPLE_ROWS 36 /* count struct ensio_otf2_sample */
#define ENSIO_OTF2_READ 35        /* reading is complete; texts: pairs of a name and a count */

/* Kinds of rows. The first three are operations on files. */
#define ENSIO_OTF2_ROW_READ 0
#define ENSIO_OTF2_ROW_WRITE 1
#define ENSIO_OTF2_ROW_FLUSH 2
#define ENSIO_OTF2_ROW_OPEN 3
#define ENSIO_OTF2_ROW_CLOSE 4
#define ENSIO_OTF2_ROW_SEEK 5
#define ENSIO_OTF2_ROW_DELETE 6
#define ENSIO_OTF2_ROW_DUPLICATE 7
#define ENSIO_OTF2_ROW_CALL 8   /* a call that has only its region */
#define ENSIO_OTF2_ROW_REGION 9 /* a phase or region of the program; `moved`: 1 if it ended */

struct ensio_otf2_row {
    int64_t start, duration; /* ns since the archive's time 0 */
    int64_t offset, moved;   /* -1: none, or unknown; the call failed */
    uint64_t requested;
    int64_t flight;        /* of a non-blocking request: to its completion; -1: none */
    uint32_t location;     /* index of the location, in the order of their definitions */
    uint32_t region, file; /* numbers of definitions; 2^32-1: none */
    uint32_t rank;         /* 2^32-1: that of the location */
    uint32_t request;      /* number of a non-blocking request; 0: none */
    uint32_t site;         /* number of the call site; 0: unknown */
    uint16_t thread;       /* 2^16-1: that of the location */
    uint16_t error;
    uint8_t kind, paradigm, depth, carried; /* paradigm: 255: none */
};

struct ensio_otf2_sample {
    int64_t time, value; /* ns since the origin; in the unit of the counter */
    uint32_t metric;     /* of n counters, numbered from 0: n * (1 + rank) + counter */
    uint32_t reserved;
};

/* Messages on standard input and output. An error ends the program (ensio_fail). */
void ensio_send(uint32_t kind, uint32_t count, const void *data, uint64_t bytes);
void ensio_flush(void);
/* From now on, forked processes send whole messages concurrently. */
void ensio_share_output(void);
int ensio_receive_head(struct ensio_message *message);
void ensio_receive(void *data, size_t bytes);
/* The texts of a message, contiguous, always ended by a NUL; the caller frees them. */
char *ensio_receive_texts(const struct ensio_message *message);

/* Allocates memory, or ends the program. */
void *ensio_more(void *old, size_t bytes);

/* Ends the program with a sentence on standard error and status 2. */
_Noreturn void ensio_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
