/* event.h: the layout of a spool, the file in which one process records its calls.
 *
 * This header is the only definition of the layout. The recorder writes by it, and the Python reader parses it
 * (ensembles/model/c_layout.py). Keep to one member a line, fixed-width types, no bit fields, and named padding.
 * docs/reference/formats/spool.md explains the format.
 *
 * A spool is a sequence of windows. Every window begins at a multiple of ENSIO_WINDOW_UNIT_BYTES, and its length is a
 * multiple of that. The first window belongs to the process: it begins with struct ensio_spool, and its text entries
 * begin at ENSIO_SPOOL_TEXT_BYTES. All other windows begin with struct ensio_window. Integers are in the byte order of
 * the machine that wrote them. */
#ifndef ENSIO_EVENT_H
#define ENSIO_EVENT_H

#include <stdint.h>

#define ENSIO_SPOOL_MAGIC 0x4c50534f49534e45ULL /* the bytes "ENSIOSPL" on a little-endian machine */
#define ENSIO_SPOOL_VERSION 4
#define ENSIO_WINDOW_MAGIC 0x4e495745U /* the bytes "EWIN" */
#define ENSIO_WINDOW_UNIT_BYTES 4096
#define ENSIO_SPOOL_BYTES 65536          /* length of the first window */
#define ENSIO_SPOOL_LOSSES_BYTES 2048    /* from the start of the first window to struct ensio_losses */
#define ENSIO_SPOOL_FLIGHTS_BYTES 3072   /* from the start of the first window to struct ensio_flights */
#define ENSIO_SPOOL_ACCOUNT_BYTES 3584   /* from the start of the first window to struct ensio_account */
#define ENSIO_SPOOL_TEXT_BYTES 4096      /* from the start of the first window to its first text entry */
#define ENSIO_WINDOW_HEADER_BYTES 64     /* from the start of any other window to its first event or text entry */
#define ENSIO_PART_EVENTS 1024           /* slots of a window that are filled before it is looked at again */
#define ENSIO_WINDOW_LARGE_BYTES 2097152 /* such windows begin at a multiple of it, behind a hole if need be */

/* Kinds of windows. */
#define ENSIO_WINDOW_EVENTS 1
#define ENSIO_WINDOW_TEXT 2
#define ENSIO_WINDOW_CELLS 3        /* struct ensio_cell, contiguous */
#define ENSIO_WINDOW_BINS 4         /* blocks of ENSIO_BLOCK_BINS counts (uint64_t) */
#define ENSIO_WINDOW_SCRATCH 5      /* events to be added to the summary; those before `summarised` are meaningless */
#define ENSIO_WINDOW_MARKS 6        /* phases and regions, as events of calls 240 and up */
#define ENSIO_WINDOW_SURROUNDINGS 7 /* struct ensio_surroundings, contiguous */
#define ENSIO_WINDOW_FLIGHTS 8      /* struct ensio_flight, one for each completed request of non-blocking I/O */
/* ENSIO_PART_EVENTS slots of events, and behind them blocks (jobfile.h) of the events that were in these slots before
 */
#define ENSIO_WINDOW_CODED 9
#define ENSIO_CODED_SLOTS 4294967295 /* as `summarised` of such a window: the last block has what is in the slots */

/* Kinds of text entries. */
#define ENSIO_TEXT_FILE 1       /* id: the file's number in events; text: its absolute path */
#define ENSIO_TEXT_CALLS 2      /* text: a line for each call, "number name layer op" */
#define ENSIO_TEXT_PROPERTIES 3 /* text: "key=value" strings, each ended by a NUL */
#define ENSIO_TEXT_FILE_FACTS 4 /* id: a file's number; text: "key=value" strings about it, each ended by a NUL */
#define ENSIO_TEXT_REGION 5     /* id: the number of a phase's or region's name; text: the name */
#define ENSIO_TEXT_SITE 6       /* id: the site's number in events; text: its call path (spool.md) */

/* What a sample of the kernel's counters holds; all other members of it are 0. */
#define ENSIO_READ_PROCESS 1          /* read_by_calls to cancelled_write_bytes */
#define ENSIO_READ_MEMORY 2           /* available_bytes to writeback_bytes */
#define ENSIO_READ_PRESSURE 4         /* some_us and full_us */
#define ENSIO_READ_CGROUP 8           /* cgroup_read_bytes to cgroup_writes */
#define ENSIO_READ_CGROUP_PRESSURE 16 /* cgroup_some_us and cgroup_full_us */
#define ENSIO_READ_NFS 32             /* nfs_read_bytes to nfs_retransmissions */
#define ENSIO_READ_LUSTRE_DIRTY 64    /* lustre_dirty_bytes */
#define ENSIO_READ_LUSTRE_AHEAD 128   /* lustre_ahead_hits and lustre_ahead_misses */
#define ENSIO_READ_LUSTRE_RPCS 256    /* lustre_read_rpcs to lustre_write_pages */

/* Flags of events: an enclosing call counts the bytes that this call reads or writes. */
#define ENSIO_CARRIED_READ 1
#define ENSIO_CARRIED_WRITE 2
#define ENSIO_IS_EVENT 4    /* in `largest` of a cell: the call is among the events as well (mode tail) */
#define ENSIO_SUMMED_ONLY 8 /* for the summary only: once the event is there, its slot is emptied */
/* Of a call that opens a file: the access that it asked for, as far as that is known. */
#define ENSIO_OPENED_TO_READ 16
#define ENSIO_OPENED_TO_WRITE 32
#define ENSIO_WAITS_FOR_DEVICE 64 /* of a write: its descriptor was opened with O_SYNC, O_DSYNC or O_DIRECT */
#define ENSIO_SAME_CALL 128       /* one system call made this event and the one around it: the write of a copy */
#define ENSIO_NO_ERRNO 65536      /* above all errnos: of a failed call whose library names no error of the system */

/* The summary: the calls of a process by call, size class and ordinal class (docs/reference/formats/spool.md). */
#define ENSIO_BLOCK_BINS 32     /* bins of an octave, which a block holds */
#define ENSIO_OCTAVES 60        /* octaves of the bins, the first of them from 0 on */
#define ENSIO_LARGEST 8         /* longest calls of a cell that are kept as events */
#define ENSIO_ORDINALS_APART 16 /* the first calls of a rank, operation and file have a class each */
#define ENSIO_ORDINAL_UNKNOWN 0 /* class of calls whose ordinal is unknown */
#define ENSIO_ALL_ORDINALS 255  /* class of calls whose ordinals are no longer distinguished */
#define ENSIO_ALL_SIZES 255     /* size class of calls whose sizes are no longer distinguished */
#define ENSIO_RATE_BITS 32      /* rates are nanoseconds a tick times 2^32 */

/* States of a process. */
#define ENSIO_STATE_RUNNING 0 /* still running, or killed */
#define ENSIO_STATE_ENDED 1   /* the process ended in order, its recording is complete */
/* The process continued as another program (exec) or as a child (daemon); its recording is complete. */
#define ENSIO_STATE_REPLACED 2

/* Why calls are not among the events. */
#define ENSIO_DROPPED_UNKNOWN 0
/* ENSIO_MAX_BYTES was used up; without it, a tenth of the free space of the node */
#define ENSIO_DROPPED_BUDGET 1
#define ENSIO_DROPPED_FLOOR 2       /* less than a twentieth of the file system, and less than 1 GiB, was free */
#define ENSIO_DROPPED_FULL 3        /* the file system or a quota was full */
#define ENSIO_DROPPED_FILE_SIZE 4   /* the process's limit on the size of files */
#define ENSIO_DROPPED_UNREACHABLE 5 /* the spool was removed or could no longer be opened */
#define ENSIO_DROPPED_MEMORY 6      /* the process's limits on memory */
#define ENSIO_DROP_REASONS 8

/* Clocks in which ticks are counted. */
#define ENSIO_CLOCK_TSC 1       /* invariant time-stamp counter */
#define ENSIO_CLOCK_MONOTONIC 2 /* clock_gettime(CLOCK_MONOTONIC): a tick is a nanosecond */

/* 1 to 5 s. A thread renews the last reading with the first call that ends so long after it last did. */
#define ENSIO_CLOCK_RENEWAL_TICKS 4294967296

/* One completed call. Its last eight bytes are stored last, by one store: an event whose `call` is 0 is incomplete, and
 * is skipped. */
struct ensio_event {
    uint64_t start;     /* ticks at the call's entry */
    uint64_t duration;  /* ticks from entry to return; of a call that posts a request, the time in this call */
    int64_t offset;     /* bytes from the start of the file; -1: none, or unknown */
    uint64_t requested; /* bytes requested */
    int64_t moved;      /* bytes moved; of a failed call, minus its errno or ENSIO_NO_ERRNO */
    uint16_t file;      /* number of a file entry; 0: none */
    uint16_t site;      /* number of a site entry: the place in the program that led to the call; 0: unknown */
    uint16_t call;      /* number in the calls entry; 0: this slot holds no event */
    uint8_t depth;      /* recorded calls of this thread that enclose this one */
    uint8_t flags;      /* ENSIO_CARRIED_... and those that follow them */
};

/* Simultaneous readings of the tick counter and of the system's clocks. */
struct ensio_clock_reading {
    uint64_t ticks;
    uint64_t monotonic_ns;
    uint64_t realtime_ns; /* since 1970-01-01 UTC */
};

/* A barrier of all ranks, for the alignment of the nodes' clocks: ticks when this rank entered and left it. 0: there
 * was none. */
struct ensio_meeting {
    uint64_t entered;
    uint64_t left;
};

#define ENSIO_MEETINGS 8 /* consecutive barriers, in MPI_Init and again in MPI_Finalize */

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
    int32_t rank;     /* -1: unknown */
    uint32_t tasks;   /* the job's number of ranks; 0: unknown */
    uint32_t threads; /* threads that recorded, numbered from 0 */
    struct ensio_clock_reading first;
    struct ensio_clock_reading last;
    struct ensio_clock_reading spare; /* alternates with `last`, so that one of them is complete at any moment */
    uint32_t last_is_spare;           /* 1: the last reading is `spare` */
    uint32_t unrecorded_children;     /* forked children that made calls but could not make a spool */
    /* completed calls that are not among the events, because space or a descriptor was missing */
    uint64_t dropped_events;
    uint64_t excluded_calls; /* calls on excluded files (ENSIO_EXCLUDE), as far as they were counted */
    uint64_t lost_calls;     /* dropped events that are missing in the summary too */
    /* 1: events are being added to the summary; one of them may be missing in part, or be added twice */
    uint32_t folding;
    uint32_t identity_sum; /* of `clock` to `tasks`, and of `first` (spool.md); 0: unknown */
    /* in MPI_Init, if the job has several nodes and all ranks are recorded */
    struct ensio_meeting begin[ENSIO_MEETINGS];
    struct ensio_meeting end[ENSIO_MEETINGS]; /* in MPI_Finalize */
};

/* Losses and their reasons: in the first window, at ENSIO_SPOOL_LOSSES_BYTES. All 0 if the recorder did not note
 * them. */
struct ensio_losses {
    uint64_t dropped_for[ENSIO_DROP_REASONS]; /* dropped_events by reason */
    uint64_t calls_on_other_paths;            /* calls that name a path beyond the limit of a process */
    uint64_t calls_without_site;              /* calls from sites beyond the limit of a process */
};

/* Facts of an account. */
#define ENSIO_ACCOUNT_TAKEN 1    /* `end` was read; without it the numbers mean nothing */
#define ENSIO_ACCOUNT_LINKED 2   /* the recorder is linked into the program: shared libraries are not seen */
#define ENSIO_ACCOUNT_GO 4       /* the program is written in Go */
#define ENSIO_ACCOUNT_CHILDREN 8 /* the process has waited for children, whose bytes the kernel adds to its own */
#define ENSIO_ACCOUNT_AIO 16     /* libaio made a context, or one was there at some sample, or at the end */
#define ENSIO_ACCOUNT_URING 32   /* a ring of io_uring was made or mapped, or was there at some sample, or at the end */
#define ENSIO_ACCOUNT_EXITED 64  /* the process exited, and its end was read by the process that waited for it */
/* Without a launcher: standard input is a pipe or socket; standard output or error is one, or a device. */
#define ENSIO_ACCOUNT_PIPED_IN 128
#define ENSIO_ACCOUNT_PIPED_OUT 256
#define ENSIO_ACCOUNT_INLINE 512    /* inline stdio moved bytes of a file unrecorded (recorders of November 2026) */
#define ENSIO_ACCOUNT_ON_FILES 1024 /* excluded_on_files is known */

/* Counters of /proc/self/io: those of the process, and of the children that it has waited for. */
struct ensio_kernel_bytes {
    uint64_t read_by_calls;    /* rchar */
    uint64_t written_by_calls; /* wchar */
    uint64_t read_bytes;
    uint64_t write_bytes;
};

/* Bytes of calls that are not recorded because of their file, pipes and sockets included. Those of a forked child that
 * has nothing to record are in the account of its parent, as in the kernel's. */
struct ensio_excluded_bytes {
    uint64_t read;
    uint64_t written;
};

/* What the kernel counted while the process was recorded, and what of it is known not to be among the recorded calls:
 * in the first window, at ENSIO_SPOOL_ACCOUNT_BYTES. All modes keep it. */
struct ensio_account {
    struct ensio_kernel_bytes begin;
    struct ensio_kernel_bytes end; /* at the latest sample */
    struct ensio_excluded_bytes excluded;
    uint64_t own_read; /* bytes of the recorder itself */
    uint64_t own_written;
    /* ENSIO_ACCOUNT_..., and from bit 32 on the sum of the members before but `excluded` (spool.md); stored last */
    uint64_t facts;
    uint64_t excluded_on_files; /* the part of excluded.written that may have made regular files dirty */
};

/* Flags of flights. */
#define ENSIO_FLIGHT_NOT_ASKED 1 /* the program never asked whether the request is complete */

/* A request of non-blocking I/O, from the call that posted it to the moment at which the program could first observe
 * its completion. Its event is stored just before. A row whose `call` is 0 is incomplete. */
struct ensio_flight {
    uint64_t start;       /* ticks: that of the request's event */
    uint64_t flight;      /* ticks from there to the observed completion */
    uint64_t hidden;      /* the part of it in which the thread was in no call that posts or waits for a request */
    uint64_t wait_start;  /* ticks: start of the recorded call that completed it; 0: none did */
    uint64_t wait;        /* ticks in this call */
    uint32_t request;     /* number of the request in its process, from 1 */
    uint32_t flags;       /* ENSIO_FLIGHT_... */
    uint16_t thread;      /* that stored the event */
    uint16_t wait_thread; /* that made this call */
    uint16_t wait_call;   /* 0: none */
    uint16_t call;        /* stored last */
};

/* Sums of requests. */
struct ensio_flight_sums {
    uint64_t count;
    uint64_t flight; /* ticks, as in struct ensio_flight */
    uint64_t hidden;
    uint64_t wait;
};

/* The requests that the program observed to be complete, by operation, without those that were posted inside another
 * recorded call: in the first window, at ENSIO_SPOOL_FLIGHTS_BYTES. All modes keep it. */
struct ensio_flights {
    struct ensio_flight_sums read;
    struct ensio_flight_sums write;
    struct ensio_flight_sums other;
    uint64_t unlisted; /* requests without a struct ensio_flight, because space was missing */
};

/* The head of every other window. */
struct ensio_window {
    uint32_t magic;
    uint16_t kind;
    uint16_t thread;     /* of an events or scratch window: the thread of these events */
    uint64_t bytes;      /* length of the window, this head included */
    uint32_t tid;        /* the kernel's id of the thread */
    uint32_t text_bytes; /* of a text window: used by text entries, from ENSIO_WINDOW_HEADER_BYTES on */
    /* Events before this one are in the summary, later ones are not. In a window of cells: the number of used cells. */
    uint32_t summarised;
    uint32_t coded; /* of a window of that kind: events in its blocks; stored together with the member before */
    /* rate that converted the durations of these events to nanoseconds in the summary; 0: none yet */
    uint64_t rate;
};

/* Sums and extremes of the calls of one kind, size class and ordinal class. Members are in nanoseconds if their names
 * say so, else in ticks. */
struct ensio_cell {
    uint16_t call;      /* number in the calls entry; stored last; 0: the cell is unused */
    uint8_t size_class; /* 0: no bytes requested; n: 2^(n-1) to 2^n - 1; or ENSIO_ALL_SIZES */
    /* n up to ENSIO_ORDINALS_APART: the n-th calls; above, a class for each octave; or one of the classes above */
    uint8_t ordinal_class;
    uint32_t sum; /* of the members before `largest` (spool.md), when no event is being added; 0: unknown */
    uint64_t count;
    uint64_t errors;        /* calls that failed */
    uint64_t moved;         /* bytes */
    uint64_t time_ns;       /* sum of durations */
    uint64_t inner_ns;      /* the part of it that was spent in recorded calls inside */
    uint64_t nested_count;  /* calls inside other recorded calls */
    uint64_t carried_moved; /* the part of the moved bytes that an enclosing call counts (ENSIO_CARRIED_...) */
    uint64_t nested_ns;     /* sum of their durations */
    uint64_t shift_ns;      /* duration of the first call, which is subtracted from durations in the sums of powers */
    uint64_t min_ns;
    uint64_t max_ns;
    uint64_t min_requested; /* bytes; equal to the largest: all calls had this size */
    uint64_t max_requested;
    uint64_t first_start; /* ticks: start of the earliest call */
    uint64_t last_end;    /* ticks: end of the last call */
    uint64_t without_bin; /* calls that are missing in the histogram, because space was missing */
    double power2;        /* sums of powers of duration - shift_ns, in nanoseconds */
    double power3;
    double power4;
    uint16_t blocks[ENSIO_OCTAVES];  /* number of the block with the counts of each octave, from 1; 0: no call */
    uint16_t threads[ENSIO_LARGEST]; /* of `largest` */
    struct ensio_event largest[ENSIO_LARGEST]; /* the longest calls, in no order; of equal ones the earlier */
};

/* A sample of the kernel's counters. The page on samples in docs/reference/formats explains them. Counters grow from
 * the start of what they count, levels say how much there is at the moment. Those of the node, its cgroup, NFS and
 * Lustre are in the rows of one process of a node. */
struct ensio_surroundings {
    uint64_t ticks;   /* when they were read */
    uint32_t cost_ns; /* processor time that the readings took */
    uint32_t read;    /* ENSIO_READ_...; stored last; 0: the row is incomplete */
    /* /proc/self/io */
    uint64_t read_by_calls;    /* rchar: bytes that read calls returned, from the page cache too */
    uint64_t written_by_calls; /* wchar */
    uint64_t read_calls;       /* syscr */
    uint64_t write_calls;      /* syscw */
    uint64_t read_bytes;       /* fetched from storage */
    uint64_t write_bytes;      /* made dirty, to be sent to storage */
    uint64_t cancelled_write_bytes;
    /* levels, /proc/meminfo */
    uint64_t available_bytes; /* MemAvailable */
    uint64_t cached_bytes;
    uint64_t dirty_bytes;
    uint64_t writeback_bytes;
    /* /proc/pressure/io: microseconds in which some tasks, and all tasks, of the node waited for I/O */
    uint64_t some_us;
    uint64_t full_us;
    /* io.stat and io.pressure of the cgroup (version 2), sums of its devices */
    uint64_t cgroup_read_bytes;
    uint64_t cgroup_write_bytes;
    uint64_t cgroup_reads;
    uint64_t cgroup_writes;
    uint64_t cgroup_some_us;
    uint64_t cgroup_full_us;
    /* /proc/self/mountstats, sums of the NFS mounts */
    uint64_t nfs_read_bytes; /* from and to the servers */
    uint64_t nfs_write_bytes;
    uint64_t nfs_reads; /* operations */
    uint64_t nfs_writes;
    uint64_t nfs_commits;
    uint64_t nfs_read_ms; /* sums of the times of these operations, with their waiting in the client */
    uint64_t nfs_write_ms;
    uint64_t nfs_retransmissions; /* of all operations */
    /* sums of the Lustre client's targets and mounts */
    uint64_t lustre_dirty_bytes; /* a level */
    uint64_t lustre_ahead_hits;  /* pages found in the cache, and not */
    uint64_t lustre_ahead_misses;
    uint64_t lustre_read_rpcs;
    uint64_t lustre_read_pages; /* at most: RPCs are counted in classes of size */
    uint64_t lustre_write_rpcs;
    uint64_t lustre_write_pages;
};

/* The head of a text entry; its text follows, and the next entry begins at the next multiple of eight bytes. */
struct ensio_text {
    uint16_t kind; /* stored when all but the sum is; 0: the entry was never completed */
    uint16_t reserved;
    uint32_t id;
    uint32_t length; /* bytes of text, without a closing NUL; stored first, with the next member */
    /* 1, and at last the CRC-32 from `id` to the text, with this 1, exclusive-or `kind`; 0 or 1: unknown */
    uint32_t sum;
};

#endif
