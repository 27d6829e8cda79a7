/* pfsmodel.h: a model of a parallel file system in virtual time: when does each call of many tasks complete?
 *
 * The model knows no clock and makes no call. Somebody tells it that a call begins (pfs_begin), brings it forward in
 * time (pfs_advance), and takes the calls that are complete (pfs_take). ensio-simulate does so in virtual time;
 * libensio-pfs does so in real time, with the state in memory that all processes of the machine share, so the state is
 * one block without a pointer into itself. All times are nanoseconds on one clock of the caller's choice.
 *
 * Deterministic: the same settings, seed and calls at the same times give the same completions, on every machine.
 * Noise is a function of (seed, task, the task's how-manieth call, target), never of the order in which calls come.
 */
#ifndef ENSIO_PFSMODEL_H
#define ENSIO_PFSMODEL_H

#include <stddef.h>
#include <stdint.h>

struct pfs_settings; /* settings.h: physical parameters and faults, read from a text of "key value" lines */
struct pfs;          /* the state, of pfs_bytes() bytes, 64-byte aligned */

enum pfs_operation {
    PFS_OPEN, /* of a file that is there */
    PFS_CREATE,
    PFS_CLOSE,
    PFS_READ,
    PFS_WRITE,
    PFS_SYNC, /* what this task wrote to the file is on the targets when it completes */
    PFS_META, /* stat, unlink, rename, truncate ...: one request to the metadata server */
    PFS_SEEK  /* free */
};

struct pfs_call {
    int32_t task;   /* who calls: below limits.tasks; has one call at a time */
    int32_t file;   /* from pfs_file(); -1: none */
    int64_t offset; /* of reads and writes */
    int64_t bytes;
    uint16_t operation;
    uint16_t through; /* not 0: a write that is complete only when it is on the targets (O_SYNC, O_DIRECT) */
};

struct pfs_limits {
    int32_t tasks; /* callers: tasks, or threads of tasks */
    int32_t nodes;
    int32_t files;
};

size_t pfs_bytes(const struct pfs_settings *settings, const struct pfs_limits *limits);

/* Makes a model in zeroed memory of that many bytes. Its time is 0. */
void pfs_create(struct pfs *model, const struct pfs_settings *settings, const struct pfs_limits *limits, uint64_t seed);

/* On which node a task is (default: task / settings' tasks_per_node). */
void pfs_place(struct pfs *model, int32_t task, int32_t node);

/* The model's number of a file that the caller knows by a key of its own (a hash of device and inode, a number in a
 * plan). -1: more than limits.files. A new file has the settings' stripes; its first target follows from key and seed.
 */
int32_t pfs_file(struct pfs *model, uint64_t key);

/* A call begins at `now_ns`, not before the time the model was brought to. Until it is taken the task begins no other.
 */
void pfs_begin(struct pfs *model, int64_t now_ns, const struct pfs_call *call);

/* When something next happens in the model if no call begins before; INT64_MAX: nothing will. */
int64_t pfs_next_ns(const struct pfs *model);

/* Brings the model to `now_ns`. */
void pfs_advance(struct pfs *model, int64_t now_ns);

/* Takes one complete call, in order of completion: its task, and when it completed. -1: there is none. For callers
 * that serve all tasks. */
int32_t pfs_take(struct pfs *model, int64_t *done_ns);

/* The same for one task: 0: its call is not complete yet; 1: it was, and is taken. For callers that serve one. */
int pfs_take_of(struct pfs *model, int32_t task, int64_t *done_ns);

/* The task makes no more calls: what it holds is free, a call of its that goes on is given up. */
void pfs_leave(struct pfs *model, int32_t task);

#endif
