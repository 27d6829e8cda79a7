/* event.h: the layout of a spool, the file in which one process records its calls.
 *
 * This header is the only description of the layout. The recorder writes through it, and the Python reader parses it
 * (ensembles/readers/layout.py), so that nothing is typed twice. Keep to one member a line, fixed-width types, no bit
 * fields, and no padding that is not named. docs/trace-format.md tells the story around it.
 *
 * A spool is a sequence of windows. Every window begins at a multiple of ENSIO_WINDOW_UNIT_BYTES and is a multiple of it
 * long. The first window is the process's own: it begins with struct ensio_spool, and its text entries begin at
 * ENSIO_SPOOL_TEXT_BYTES. All others begin with struct ensio_window. Integers are in the byte order of the machine that
 * wrote them.
 */
#ifndef ENSIO_EVENT_H
#define ENSIO_EVENT_H

#include <stdint.h>

#define ENSIO_SPOOL_MAGIC 0x4c50534f49534e45ULL /* the bytes "ENSIOSPL" on a little-endian machine */
#define ENSIO_SPOOL_VERSION 1
#define ENSIO_WINDOW_MAGIC 0x4e495745U /* the bytes "EWIN" */
#define ENSIO_WINDOW_UNIT_BYTES 4096
#define ENSIO_SPOOL_BYTES 65536      /* length of the first window */
#define ENSIO_SPOOL_TEXT_BYTES 4096  /* from the start of the first window to its first text entry */
#define ENSIO_WINDOW_HEADER_BYTES 64 /* from the start of any other window to its first event or text entry */

/* Kinds of windows. */
#define ENSIO_WINDOW_EVENTS 1
#define ENSIO_WINDOW_TEXT 2

/* Kinds of text entries. */
#define ENSIO_TEXT_FILE 1       /* id: the file's number in events; text: its absolute path */
#define ENSIO_TEXT_CALLS 2      /* text: a line for each call, "number name layer op" */
#define ENSIO_TEXT_PROPERTIES 3 /* text: "key=value" strings, each ended by a NUL */

/* States of a process. */
#define ENSIO_STATE_RUNNING 0 /* still running, or killed, or replaced by exec */
#define ENSIO_STATE_ENDED 1   /* the process ended in order, its recording is whole */

/* Clocks in which ticks are counted. */
#define ENSIO_CLOCK_TSC 1       /* invariant time-stamp counter */
#define ENSIO_CLOCK_MONOTONIC 2 /* clock_gettime(CLOCK_MONOTONIC): a tick is a nanosecond */

/* One completed call. Its last eight bytes are stored last and in one piece: an event whose `call` is 0 was not
 * completed, and is skipped. */
struct ensio_event {
    uint64_t start;     /* ticks at the call's entry */
    uint64_t duration;  /* ticks from entry to return */
    int64_t offset;     /* bytes from the start of the file; -1: none, or not known */
    uint64_t requested; /* bytes asked for */
    int64_t moved;      /* bytes moved; of a failed call, minus its errno */
    uint32_t file;      /* number of a file entry; 0: none */
    uint16_t call;      /* number in the calls entry; 0: this slot holds no event */
    uint8_t depth;      /* recorded calls of this thread around this one */
    uint8_t flags;      /* none yet: 0 */
};

/* The same moment, read from the tick counter and from the system's clocks. */
struct ensio_clock_reading {
    uint64_t ticks;
    uint64_t monotonic_ns;
    uint64_t realtime_ns; /* since 1970-01-01 UTC */
};

/* The head of the first window. */
struct ensio_spool {
    uint64_t magic;
    uint32_t version;
    uint32_t event_bytes;     /* sizeof(struct ensio_event) */
    uint64_t allocated_bytes; /* where the next window will begin: no window begins at or after it */
    uint32_t text_bytes;      /* used by text entries in this window, from ENSIO_SPOOL_TEXT_BYTES on */
    uint32_t state;
    uint32_t clock;
    uint32_t pid;
    uint32_t parent_pid;
    int32_t rank;     /* -1: no launcher gave one */
    uint32_t tasks;   /* the job's number of ranks; 0: not known */
    uint32_t threads; /* threads that recorded, numbered from 0 */
    struct ensio_clock_reading first;
    struct ensio_clock_reading last;
    struct ensio_clock_reading spare; /* takes turns with `last`, so that one of them is whole at any moment */
    uint32_t last_is_spare;           /* 1: the last reading is `spare` */
    uint32_t unrecorded_children;     /* forked children that made calls but could not make a spool */
    uint64_t dropped_events; /* completed calls that are not in this spool, for want of space or of a descriptor */
    uint64_t excluded_calls; /* calls on files that are left out (ENSIO_EXCLUDE), as far as they were counted */
};

/* The head of every other window. */
struct ensio_window {
    uint32_t magic;
    uint16_t kind;
    uint16_t thread; /* of an events window: the thread whose events these are */
    uint64_t bytes;  /* length of the window, this head included */
    uint32_t tid;    /* the kernel's name for the thread */
    uint32_t text_bytes; /* of a text window: used by text entries, from ENSIO_WINDOW_HEADER_BYTES on */
};

/* The head of a text entry; its text follows, and the next entry begins at the next multiple of eight bytes. */
struct ensio_text {
    uint16_t kind; /* stored last: 0: the entry is not complete */
    uint16_t reserved;
    uint32_t id;
    uint32_t length; /* bytes of text, without a closing NUL */
    uint32_t reserved2;
};

#endif
