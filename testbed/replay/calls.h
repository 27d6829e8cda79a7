/* calls.h: the calls that a plan can name, as layer.call. calls_<layer>.c holds the calls of a layer. */
#ifndef ENSIO_REPLAY_CALLS_H
#define ENSIO_REPLAY_CALLS_H

#include "plan.h"

#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define PROBLEM_BYTES 1024

/* A file of the plan, as this task has it open. */
struct open_file {
    const char *path;
    int descriptor;           /* posix; -1: closed */
    DIR *folder;              /* posix, open for reading its names */
    FILE *stream;             /* stdio; NULL: closed */
    char *buffer;             /* stdio: of setvbuf */
    int64_t position;         /* posix, of plans of recorded runs */
    int stream_is_own;        /* stdio: no other task opens the file */
    struct mpiio_file *mpiio; /* NULL: no call of this layer uses the file */
    struct hdf5_file *hdf5;
    struct variable_file *netcdf;
    struct variable_file *pnetcdf;
};

/* A call to make, and its result. */
struct call_target {
    const struct plan *plan;
    const struct plan_operation *operation;
    struct open_file *file; /* NULL: the call has none */
    unsigned char *data;
    int is_single; /* posix: a call that moves fewer bytes is not continued */
    int64_t moved; /* bytes of a file, summed over all system calls */
    /* number of calls made: more than one if the system moved less than requested */
    int64_t made;
    char problem[PROBLEM_BYTES]; /* what is wrong, if errno does not express it */
};

/* Data of a call. */
struct call_data {
    int moves_file_bytes; /* the operation's `bytes` are bytes of a file, and all of them must be moved */
    /* Bytes of memory that it needs. */
    int64_t (*room)(const struct plan *, const struct plan_operation *);
    /* Before the step: fills in data to write, and clears memory for data to read. */
    void (*fill)(const struct call_target *);
    /* After the step: whether the data read are right; otherwise describes the error in target->problem. */
    int (*is_right)(struct call_target *);
};

/* What a call operates on: nothing, the name of a file, or a file that this task has open in this layer. */
enum call_object { NOTHING, NAMED_FILE, OPEN_FILE };

struct call {
    const char *name;
    const struct call_data *data; /* NULL: no data */
    /* Makes `count` calls, which is 1 unless `together`. Returns 0, or -1 with errno or a problem. */
    int (*make)(struct call_target *targets, long count);
    int together; /* consecutive calls are started together and waited for together */
    enum call_object on;
    int is_idle;     /* not a call */
    int in_boxes;    /* its data may be in several boxes */
    int at_position; /* it begins at the position of the open file, or sets that */
};

/* The calls of a layer are one list, CALLS(X), of X(name, calls, expression, fields ...). CALLS(MAKE) defines the
 * function of each: it counts so many calls, and its result is that of the expression of `target`, `operation` and
 * `file`. CALLS(ROW) are the rows of its table, with the further fields of `struct call`. */
#define MAKE(name, calls, expression, ...) \
    static int make_##name(struct call_target *target, long count) \
    { \
        const struct plan_operation *operation = target->operation; \
        struct open_file *file = target->file; \
        (void)operation; \
        (void)file; \
        (void)count; \
        target->made += (calls); \
        return (expression); \
    }
#define ROW(name_, calls, expression, ...) {.name = #name_, .make = make_##name_, __VA_ARGS__},

struct layer {
    const char *name;
    const struct call *calls; /* the last one has no name; NULL: none can be made, see `missing` */
    const char *missing;      /* why this program lacks the layer */
    int (*is_open)(const struct open_file *);
    /* Before the first step, if a plan uses the layer: collective over MPI_COMM_WORLD. NULL: not needed. */
    void (*look_ahead)(const struct plan *, struct open_file *files);
};

extern const struct layer posix_layer;
extern const struct layer stdio_layer;
extern const struct layer mpiio_layer;
extern const struct layer hdf5_layer;
extern const struct layer netcdf_layer;
extern const struct layer pnetcdf_layer;
extern const struct layer mpi_layer;
extern const struct layer task_layer;

/* Sets the position of a task in a file of MPI-IO, which is not recorded. */
void mpiio_seek(const struct open_file *file, int64_t offset);

/* Finds the layer and the call of a name like "posix.write"; either is NULL if it does not exist. */
void call_named(const char *name, const struct layer **layer, const struct call **call);

/* Whether operation i of the plan is a call of this layer. */
int is_of_layer(const struct plan *plan, const struct plan_operation *operation, const struct layer *layer);

#endif
