/* event.h: the layout of a spool, the file in which one process records its calls.
 *
 * This header is the only description of the layout. The recorder writes through it, and the Python reader parses it
 * (ensembles/model/c_layout.py), so that nothing is typed twice. Keep to one member a line, fixed-width types, no bit
 * fields, and no padding that is not named. docs/reference/formats/spool.md tells the story around it.
 *
 * A spool is a sequence of windows. Every window begins at a multiple of ENSIO_WINDOW_UNIT_BYTES and is a multiple of
 * it long. The first window is the process's own: it begins with struct ensio_spool, and its text entries begin at
 * ENSIO_SPOOL_TEXT_BYTES. All others begin with struct ensio_window. Integers are in the byte order of the machine that
 * wrote them.
 */
#ifndef ENSIO_EVENT_H
#define ENSIO_EVENT_H

#include <stdint.h>

#define ENSIO_SPOOL_MAGIC 0x4c50534f49534e45ULL /* the bytes "ENSIOSPL" on a little-endian machine */
#define ENSIO_SPOOL_VERSION 3
#define ENSIO_WINDOW_MAGIC 0x4e495745U /* the bytes "EWIN" */
#define ENSIO_WINDOW_UNIT_BYTES 4096
#define ENSIO_SPOOL_BYTES 65536       /* length of the first window */
#define ENSIO_SPOOL_LOSSES_BYTES 2048 /* from the start of the first window to struct ensio_losses */
#define ENSIO_SPOOL_TEXT_BYTES 4096   /* from the start of the first window to its first text entry */
#define ENSIO_WINDOW_HEADER_BYTES 64  /* from the start of any other window to its first event or text entry */

/* Kinds of windows. */
#define ENSIO_WINDOW_EVENTS 1
#define ENSIO_WINDOW_TEXT 2
#define ENSIO_WINDOW_CELLS 3   /* struct ensio_cell, one behind the other */
#define ENSIO_WINDOW_BINS 4    /* blocks of ENSIO_BLOCK_BINS counts (uint64_t) */
#define ENSIO_WINDOW_SCRATCH 5 /* events on their way into the summary; those before `summarised` are of no meaning */
#define ENSIO_WINDOW_MARKS 6   /* phases and regions, as events of calls 240 and up */

/* Kinds of text entries. */
#define ENSIO_TEXT_FILE 1       /* id: the file's number in events; text: its absolute path */
#define ENSIO_TEXT_CALLS 2      /* text: a line for each call, "number name layer op" */
#define ENSIO_TEXT_PROPERTIES 3 /* text: "key=value" strings, each ended by a NUL */
#define ENSIO_TEXT_FILE_FACTS 4 /* id: a file's number; text: "key=value" strings about it, each ended by a NUL */
#define ENSIO_TEXT_REGION 5     /* id: the number of a phase's or region's name; text: the name */

/* Flags of events: a call around this one counts the bytes that are read in it, or those that are written. */
#define ENSIO_CARRIED_READ 1
#define ENSIO_CARRIED_WRITE 2

/* The summary: what the calls of a process add up to, by call, size class and ordinal class
 * (docs/reference/formats/spool.md). */
#define ENSIO_BLOCK_BINS 32     /* bins of an octave of the bin law, which is what a block holds */
#define ENSIO_OCTAVES 60        /* of the bin law, the first of them from 0 on */
#define ENSIO_LARGEST 8         /* longest calls of a cell that are kept whole */
#define ENSIO_ORDINALS_APART 16 /* the first calls of a rank, operation and file that have a class each */
#define ENSIO_ORDINAL_UNKNOWN 0 /* class of the calls whose ordinal is not known */
#define ENSIO_ALL_ORDINALS 255  /* class of calls whose ordinals are not told apart any more */
#define ENSIO_ALL_SIZES 255     /* size class of calls whose sizes are not told apart any more */
#define ENSIO_RATE_BITS 32      /* rates are nanoseconds a tick times 2^32 */

/* States of a process. */
#define ENSIO_STATE_RUNNING 0 /* still running, or killed */
#define ENSIO_STATE_ENDED 1   /* the process ended in order, its recording is whole */
/* it went on as another program (exec), or as a child (daemon): its recording is whole */
#define ENSIO_STATE_REPLACED 2

/* Why calls are not among the events. */
#define ENSIO_DROPPED_UNKNOWN 0
/* ENSIO_MAX_BYTES, or without it a tenth of what was free on the node, was used up */
#define ENSIO_DROPPED_BUDGET 1
#define ENSIO_DROPPED_FLOOR 2       /* less than a twentieth of the file system, and less than 1 GiB, was free */
#define ENSIO_DROPPED_FULL 3        /* the file system or a quota was full */
#define ENSIO_DROPPED_FILE_SIZE 4   /* the process's limit on the size of files */
#define ENSIO_DROPPED_UNREACHABLE 5 /* the spool was gone or could not be opened any more */
#define ENSIO_DROPPED_MEMORY 6      /* the process's limits on memory */
#define ENSIO_DROP_REASONS 8

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
    uint8_t flags;      /* ENSIO_CARRIED_... */
};

/* The same moment, read from the tick counter and from the system's clocks. */
struct ensio_clock_reading {
    uint64_t ticks;
    uint64_t monotonic_ns;
    uint64_t realtime_ns; /* since 1970-01-01 UTC */
};

/* A barrier of all ranks, from which the clocks of nodes are aligned: in ticks, when this rank came to it and when it
 * went on. 0: there was none. */
struct ensio_meeting {
    uint64_t entered;
    uint64_t left;
};

#define ENSIO_MEETINGS 8 /* one after the other, in MPI_Init and again in MPI_Finalize */

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
    uint64_t dropped_events; /* completed calls that are not among the events, for want of space or of a descriptor */
    uint64_t excluded_calls; /* calls on files that are left out (ENSIO_EXCLUDE), as far as they were counted */
    uint64_t lost_calls;     /* those of the dropped events that are not in the summary either */
    /* 1: events are being added to the summary: of one of them, a part may be missing in it or be twice */
    uint32_t folding;
    uint32_t reserved; /* 0 */
    /* in MPI_Init, where the job has several nodes and all ranks are recorded */
    struct ensio_meeting begin[ENSIO_MEETINGS];
    struct ensio_meeting end[ENSIO_MEETINGS]; /* in MPI_Finalize */
};

/* What is missing, and why: in the first window, at ENSIO_SPOOL_LOSSES_BYTES. All 0 in spools of recorders that did not
 * note it. */
struct ensio_losses {
    uint64_t dropped_for[ENSIO_DROP_REASONS]; /* dropped_events by reason */
    uint64_t calls_on_other_paths;            /* calls that name a path beyond those that a process keeps */
};

/* The head of every other window. */
struct ensio_window {
    uint32_t magic;
    uint16_t kind;
    uint16_t thread;     /* of an events or scratch window: the thread whose events these are */
    uint64_t bytes;      /* length of the window, this head included */
    uint32_t tid;        /* the kernel's name for the thread */
    uint32_t text_bytes; /* of a text window: used by text entries, from ENSIO_WINDOW_HEADER_BYTES on */
    /* events before this one are in the summary, those from it on are not; of cells: how many are used */
    uint32_t summarised;
    uint32_t reserved; /* 0 */
    uint64_t rate;     /* at which the durations of these events became nanoseconds in the summary; 0: none did yet */
};

/* What the calls of one kind, size class and ordinal class add up to. Times are in nanoseconds where their names say
 * so, else in ticks. */
struct ensio_cell {
    uint16_t call;      /* number in the calls entry; stored last: 0: the cell is not used */
    uint8_t size_class; /* 0: no bytes requested; n: 2^(n-1) to 2^n - 1; or ENSIO_ALL_SIZES */
    /* n up to ENSIO_ORDINALS_APART: the n-th calls; beyond, one class an octave; or one of those above */
    uint8_t ordinal_class;
    uint32_t reserved;
    uint64_t count;
    uint64_t errors;        /* calls that failed */
    uint64_t moved;         /* bytes */
    uint64_t time_ns;       /* sum of durations */
    uint64_t inner_ns;      /* the part of it that was spent in recorded calls inside */
    uint64_t nested_count;  /* calls that were inside other recorded calls */
    uint64_t carried_moved; /* those of the moved bytes that a call around counts (ENSIO_CARRIED_...) */
    uint64_t nested_ns;     /* sum of their durations */
    uint64_t shift_ns;      /* duration of the first call: the sums of powers are of what others differ from it */
    uint64_t min_ns;
    uint64_t max_ns;
    uint64_t min_requested; /* bytes; equal to the largest: all calls had this size */
    uint64_t max_requested;
    uint64_t first_start; /* ticks: entry into the earliest call */
    uint64_t last_end;    /* ticks: the last return from a call */
    uint64_t without_bin; /* calls that are missing in the histogram, for want of space */
    double power2;        /* sums of powers of duration - shift_ns, in nanoseconds */
    double power3;
    double power4;
    uint16_t blocks[ENSIO_OCTAVES];  /* number of the block with the counts of each octave, from 1; 0: no call */
    uint16_t threads[ENSIO_LARGEST]; /* of `largest` */
    struct ensio_event largest[ENSIO_LARGEST]; /* the longest calls, in no order; of equals the earlier ones */
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
