/* calls.h: the calls that a plan can name, as layer.call; each layer has a file of its own, calls_<layer>.c. */
#ifndef ENSIO_REPLAY_CALLS_H
#define ENSIO_REPLAY_CALLS_H

#include "plan.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define PROBLEM_BYTES 1024

/* A file of the plan, as far as this task has it open. */
struct open_file {
    const char *path;
    int descriptor;           /* posix; -1: closed */
    FILE *stream;             /* stdio; NULL: closed */
    int stream_is_own;        /* stdio: no other task opens the file */
    struct mpiio_file *mpiio; /* NULL: no call of this layer uses the file */
    struct hdf5_file *hdf5;
};

/* One call to make, and what came of it. */
struct call_target {
    const struct plan *plan;
    const struct plan_operation *operation;
    struct open_file *file; /* NULL: the call has none */
    unsigned char *data;
    int64_t moved; /* bytes of a file, added up over all calls that it took */
    /* calls that it took: more than one where the system moved less than it was asked to */
    int64_t made;
    char problem[PROBLEM_BYTES]; /* what is wrong, where errno does not say it */
};

/* What a call does with data. */
struct call_data {
    int moves_file_bytes; /* the operation's `bytes` are bytes of a file, all of which must be moved */
    /* Bytes of memory that it needs. */
    int64_t (*room)(const struct plan *, const struct plan_operation *);
    /* Before the step: puts there what goes out, and nothing where something will come in. */
    void (*fill)(const struct call_target *);
    /* After the step: whether there is what should have come in, else says in target->problem what is not. */
    int (*is_right)(struct call_target *);
};

/* What a call is made on: nothing, a file that has only to be named, or one that this task has open in this layer. */
enum call_object { NOTHING, NAMED_FILE, OPEN_FILE };

struct call {
    const char *name;
    const struct call_data *data; /* NULL: it has none */
    /* Makes `count` calls, which is 1 unless `together`. Returns 0, or -1 with errno or a problem. */
    int (*make)(struct call_target *targets, long count);
    int together; /* calls that follow each other are begun together and waited for together */
    enum call_object on;
    int is_idle; /* it stands for no call */
};

struct layer {
    const char *name;
    const struct call *calls; /* the last has no name; NULL: none can be made, see `missing` */
    const char *missing;      /* why this program has not got the layer */
    int (*is_open)(const struct open_file *);
    /* Before the first step, where a plan uses the layer: collective over MPI_COMM_WORLD. NULL: nothing is to be known.
     */
    void (*look_ahead)(const struct plan *, struct open_file *files);
};

extern const struct layer posix_layer;
extern const struct layer stdio_layer;
extern const struct layer mpiio_layer;
extern const struct layer hdf5_layer;
extern const struct layer mpi_layer;
extern const struct layer task_layer;

/* Finds the layer and the call of a name like "posix.write"; either is NULL where there is none. */
void call_named(const char *name, const struct layer **layer, const struct call **call);

/* Whether the plan names operation i's call `layer.call`'s layer. */
int is_of_layer(const struct plan *plan, const struct plan_operation *operation, const struct layer *layer);

#endif
