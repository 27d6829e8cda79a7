/* pfsmodel.h: a model of a parallel file system in virtual time: it computes when each call of many tasks completes.
 *
 * The model has no clock and makes no system call. A driver begins calls (pfs_begin), advances the time (pfs_advance),
 * and takes complete calls (pfs_take). ensio-simulate does so in virtual time. libensio-pfs does so in real time, with
 * the state in memory that all processes of the machine share; the state is therefore one block without pointers into
 * itself. All times are nanoseconds on a clock of the driver's choice.
 *
 * The model is deterministic: the same settings, seed, and calls at the same times give the same completions on every
 * machine. Noise is a function of (seed, task, index of the task's call, target), never of the order of calls. */
#ifndef ENSIO_PFSMODEL_H
#define ENSIO_PFSMODEL_H

#include <stddef.h>
#include <stdint.h>

struct pfs_settings; /* settings.h: physical parameters and faults, read from a text of "key value" lines */
struct pfs;          /* the state, of pfs_bytes() bytes, 64-byte aligned */

enum pfs_operation {
    PFS_OPEN, /* of an existing file */
    PFS_CREATE,
    PFS_CLOSE,
    PFS_READ,
    PFS_WRITE,
    PFS_SYNC, /* completes when the task's writes to the file are on the targets */
    PFS_META, /* stat, unlink, rename, truncate ...: one request to the metadata server */
    PFS_SEEK  /* takes no time */
};

struct pfs_call {
    int32_t task;   /* the caller, below limits.tasks; it has one call at a time */
    int32_t file;   /* from pfs_file(); -1: none */
    int64_t offset; /* of reads and writes */
    int64_t bytes;
    uint16_t operation;
    uint16_t through; /* nonzero: a write that completes only when it is on the targets (O_SYNC, O_DIRECT) */
};

struct pfs_limits {
    int32_t tasks; /* callers: tasks, or threads of tasks */
    int32_t nodes;
    int32_t files;
};

size_t pfs_bytes(const struct pfs_settings *settings, const struct pfs_limits *limits);

/* Makes a model in zeroed memory of pfs_bytes() bytes. Its time is 0. */
void pfs_create(struct pfs *model, const struct pfs_settings *settings, const struct pfs_limits *limits, uint64_t seed);

/* Places a task on a node (default: task / settings' tasks_per_node). */
void pfs_place(struct pfs *model, int32_t task, int32_t node);

/* The model's number of a file, for a key of the driver's choice (a hash of device and inode, a number in a plan). -1:
 * more than limits.files. A new file has the settings' stripes; its first target follows from key and seed. */
int32_t pfs_file(struct pfs *model, uint64_t key);

/* The layout of a file from pfs_file(): bytes of a stripe, number of targets, and the first of them; the others follow
 * it, round all targets of the model. */
struct pfs_striping {
    int64_t stripe_bytes;
    int32_t count;
    int32_t first_target;
    int32_t targets; /* of the model */
};

struct pfs_striping pfs_striping(const struct pfs *model, int32_t file);

/* The target, node and task that faults slow down; -1: none. */
struct pfs_places {
    int32_t slow_target, straggler_node, straggler_task;
};

struct pfs_places pfs_places(const struct pfs *model);

/* Begins a call at `now_ns`, which is not before the model's time. The task begins no other call until this one is
 * taken. */
void pfs_begin(struct pfs *model, int64_t now_ns, const struct pfs_call *call);

/* The task, which is in no call, is complete at `time_ns`: it is taken like one whose call is complete. */
void pfs_wait(struct pfs *model, int32_t task, int64_t time_ns);

/* The time of the next event in the model if no call begins before; INT64_MAX: there is none. */
int64_t pfs_next_ns(const struct pfs *model);

/* Advances the model to `now_ns`. */
void pfs_advance(struct pfs *model, int64_t now_ns);

/* Takes one complete call, in order of completion: its task, and its time of completion. -1: there is none. For drivers
 * that serve all tasks. */
int32_t pfs_take(struct pfs *model, int64_t *done_ns);

/* The same for one task: 0: its call is not complete yet; 1: it was complete, and is taken. For drivers that serve one
 * task. */
int pfs_take_of(struct pfs *model, int32_t task, int64_t *done_ns);

/* The task makes no more calls: its resources are released, and a pending call is cancelled. */
void pfs_leave(struct pfs *model, int32_t task);

#endif
