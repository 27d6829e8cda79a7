/* stream.h: what ensio-otf2 is told and tells, over pipes. Both sides are of one version of ensio and run on one
 * machine: integers are the machine's own. docs/reference/formats/other-tools.md says it in words.
 *
 * A stream is a sequence of messages: this head, and `bytes` bytes behind it. Texts are ended by a NUL each. */
#ifndef ENSIO_OTF2_STREAM_H
#define ENSIO_OTF2_STREAM_H

#include <stddef.h>
#include <stdint.h>

struct ensio_message {
    uint32_t kind;
    uint32_t count; /* of what the kind says */
    uint64_t bytes;
};

/* To be written: in this order. All but the events are needed until the end, and kept in memory. */
#define ENSIO_OTF2_SETTINGS 1 /* struct ensio_otf2_settings */
#define ENSIO_OTF2_RUN 2      /* count 1: what is known about the run (JSON) */
/* count calls: name, layer, kind of operation, paradigm, letters (ENSIO_OTF2_LETTERS) */
#define ENSIO_OTF2_CALLS 3
#define ENSIO_OTF2_FILES 4      /* count paths; file 0 is none */
#define ENSIO_OTF2_PROPERTIES 5 /* count properties of files: number of the file, name, value */
#define ENSIO_OTF2_HOSTS 6      /* count tasks: the host of each rank */
#define ENSIO_OTF2_PROCESSES 7  /* count processes: its rank, what is known about it (JSON) */
#define ENSIO_OTF2_NAMES 8      /* count names of phases and regions */
/* Columns lie one behind the other, each filled up to a multiple of 8 bytes. */
#define ENSIO_OTF2_REGIONS 9 /* count phases and regions, by rank and start; columns as those of RegionTable */
#define ENSIO_OTF2_EVENTS 10 /* count calls, by rank; columns as those of Events */
#define ENSIO_OTF2_END 11    /* all was told */

/* Letters that say what a call is: it returns before its operation ends; all ranks make it; it removes a file; a
 * barrier. */
#define ENSIO_OTF2_NON_BLOCKING 'n'
#define ENSIO_OTF2_COLLECTIVE 'c'
#define ENSIO_OTF2_DELETES 'd'
#define ENSIO_OTF2_BARRIER 'b'

struct ensio_otf2_settings {
    uint64_t origin_unix_ns;
    uint32_t ranks_per_location; /* 1: a location is a thread of a rank */
    uint32_t reserved;
};

/* Was read: definitions are messages of texts, their first one a word that says which (reader.h); then blocks of rows.
 */
#define ENSIO_OTF2_DEFINITION 32 /* count texts */
#define ENSIO_OTF2_ROWS 33       /* count struct ensio_otf2_row */
#define ENSIO_OTF2_ALIVE 34      /* nothing to tell yet, but there is progress */
#define ENSIO_OTF2_READ 35       /* all was read; texts: name and number of what was counted, in pairs */

/* What a row is. The first three are operations on files. */
#define ENSIO_OTF2_ROW_READ 0
#define ENSIO_OTF2_ROW_WRITE 1
#define ENSIO_OTF2_ROW_FLUSH 2
#define ENSIO_OTF2_ROW_OPEN 3
#define ENSIO_OTF2_ROW_CLOSE 4
#define ENSIO_OTF2_ROW_SEEK 5
#define ENSIO_OTF2_ROW_DELETE 6
#define ENSIO_OTF2_ROW_DUPLICATE 7
#define ENSIO_OTF2_ROW_CALL 8   /* a call of which there is but its region */
#define ENSIO_OTF2_ROW_REGION 9 /* a phase or a region of the program; `moved`: 1: it ended */

struct ensio_otf2_row {
    int64_t start, duration; /* ns since the archive's time 0 */
    int64_t offset, moved;   /* -1: none, not known; the call failed */
    uint64_t requested;
    uint32_t location;     /* which of the locations, in the order of their definitions */
    uint32_t region, file; /* numbers of definitions; 2^32-1: none */
    uint32_t rank;         /* 2^32-1: the location tells */
    uint16_t thread;       /* 2^16-1: the location tells */
    uint16_t error;
    uint8_t kind, paradigm, depth, carried; /* paradigm: 255: none */
};

/* Messages on standard input and output. What goes wrong ends the program (fail). */
void ensio_send(uint32_t kind, uint32_t count, const void *data, uint64_t bytes);
void ensio_flush(void);
/* From now on processes that are forked send whole messages side by side. */
void ensio_share_output(void);
int ensio_receive_head(struct ensio_message *message);
void ensio_receive(void *data, size_t bytes);
/* The texts of a message, one behind the other, ended by a NUL in any case; to be freed. */
char *ensio_receive_texts(const struct ensio_message *message);

/* Memory, or the end of the program. */
void *ensio_more(void *old, size_t bytes);

/* Ends the program with a sentence on standard error, and status 2. */
_Noreturn void ensio_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
