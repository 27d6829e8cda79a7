/* The calls of parallel HDF5: a file that all tasks open together, with datasets of bytes and small attributes, the
 * metadata, at its root. One dataset is open at a time. Offsets of transfers count through all datasets, as if they lay
 * one behind the other; the offset of a dataset is that of its first byte. Hints "hdf5.KEY" are settings of the file
 * and its datasets. */
#define _GNU_SOURCE
#include "calls.h"

#ifndef ENSIO_PARALLEL_HDF5

const struct layer hdf5_layer = {
    .name = "hdf5",
    .missing = "was built without parallel HDF5: install its development files (Debian: libhdf5-openmpi-dev) and build "
               "ensio again",
};

#else

#include "data_pattern.h"
#include "fail.h"
#include "file_data.h"
#include "hdf5_settings.h"

#include <inttypes.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_DATASET "data"
#define DATASET "data-%012" PRId64 /* by the offset of the first byte */
#define DATASET_NAME_BYTES 32
#define ATTRIBUTE_BYTES 8 /* of an attribute whose size the plan does not give */
#define ATTRIBUTE_NAME_BYTES 32

struct hdf5_file {
    hid_t file;      /* negative: closed */
    hid_t dataset;   /* negative: closed */
    int64_t begin;   /* of the dataset that is open */
    long attributes; /* written so far */
};

/* Keeps the message of the innermost HDF5 function that failed. */
static herr_t keep_reason(unsigned depth, const H5E_error2_t *error, void *problem)
{
    if (depth == 0)
        snprintf(problem, PROBLEM_BYTES, "failed: %s", error->desc ? error->desc : "HDF5 does not say why");
    return 0;
}

/* 0 if HDF5 returned success, else -1 and the reason. */
static int done(struct call_target *target, int64_t returned)
{
    if (returned >= 0)
        return 0;
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_reason, target->problem);
    return -1;
}

static int create(struct call_target *target)
{
    hid_t properties = hdf5_file_properties(target->plan);
    target->file->hdf5->file = H5Fcreate(target->file->path, H5F_ACC_TRUNC, H5P_DEFAULT, properties);
    target->file->hdf5->attributes = 0;
    H5Pclose(properties);
    return done(target, target->file->hdf5->file);
}

static int open_path(struct call_target *target)
{
    hid_t properties = hdf5_file_properties(target->plan);
    target->file->hdf5->file = H5Fopen(target->file->path, H5F_ACC_RDWR, properties);
    H5Pclose(properties);
    return done(target, target->file->hdf5->file);
}

static int close_file(struct call_target *target)
{
    hid_t file = target->file->hdf5->file;
    target->file->hdf5->file = -1;
    return done(target, H5Fclose(file));
}

static void enter_dataset(struct hdf5_file *file, const struct plan_operation *operation, char *name)
{
    file->begin = operation->offset;
    snprintf(name, DATASET_NAME_BYTES, file->begin ? DATASET : FIRST_DATASET, file->begin);
}

static int create_dataset(struct call_target *target)
{
    struct hdf5_file *file = target->file->hdf5;
    hsize_t bytes = (hsize_t)target->operation->bytes;
    hid_t space = H5Screate_simple(1, &bytes, NULL);
    hid_t properties = hdf5_dataset_properties(target->plan);
    char name[DATASET_NAME_BYTES];
    enter_dataset(file, target->operation, name);
    file->dataset = H5Dcreate2(file->file, name, H5T_NATIVE_UCHAR, space, H5P_DEFAULT, properties, H5P_DEFAULT);
    H5Pclose(properties);
    H5Sclose(space);
    return done(target, file->dataset);
}

static int open_dataset(struct call_target *target)
{
    struct hdf5_file *file = target->file->hdf5;
    char name[DATASET_NAME_BYTES];
    enter_dataset(file, target->operation, name);
    file->dataset = H5Dopen2(file->file, name, H5P_DEFAULT);
    return done(target, file->dataset);
}

static int close_dataset(struct call_target *target)
{
    struct hdf5_file *file = target->file->hdf5;
    hid_t dataset = file->dataset;
    file->dataset = -1;
    return done(target, H5Dclose(dataset));
}

/* The pieces of an operation as a selection of the bytes of the dataset that begins there. */
static int select_pieces(hid_t space, const struct plan_operation *operation, int64_t first)
{
    if (operation->bytes == 0)
        return H5Sselect_none(space);
    int one = plan_is_contiguous(operation);
    int64_t planes = one ? 1 : operation->planes;
    hsize_t pieces = one ? 1 : (hsize_t)operation->pieces;
    hsize_t length = (hsize_t)(operation->bytes / planes) / pieces;
    hsize_t stride = pieces > 1 ? (hsize_t)operation->stride : length;
    if (planes > 1 && pieces == 1) { /* regular too, and cheaper than one selection after the other */
        pieces = (hsize_t)planes;
        stride = (hsize_t)operation->plane_stride;
        planes = 1;
    }
    for (int64_t plane = 0; plane < planes; plane++) {
        int64_t at = operation->offset - first + plane * operation->plane_stride;
        hsize_t begin = (hsize_t)at;
        if (H5Sselect_hyperslab(space, plane ? H5S_SELECT_OR : H5S_SELECT_SET, &begin, &stride, &pieces, &length) < 0)
            return -1;
    }
    return 0;
}

/* Reads or writes, independently or collectively. */
static int transfer(struct call_target *target, int writes, H5FD_mpio_xfer_t terms)
{
    hid_t dataset = target->file->hdf5->dataset;
    hsize_t bytes = (hsize_t)target->operation->bytes;
    hid_t memory = H5Screate_simple(1, &bytes, NULL);
    hid_t space = H5Dget_space(dataset);
    hid_t properties = H5Pcreate(H5P_DATASET_XFER);
    H5Pset_dxpl_mpio(properties, terms);
    int returned = select_pieces(space, target->operation, target->file->hdf5->begin);
    if (returned >= 0) {
        target->made++;
        returned = writes ? H5Dwrite(dataset, H5T_NATIVE_UCHAR, memory, space, properties, target->data)
                          : H5Dread(dataset, H5T_NATIVE_UCHAR, memory, space, properties, target->data);
    }
    int result = done(target, returned);
    if (result == 0)
        target->moved = target->operation->bytes;
    H5Pclose(properties);
    H5Sclose(space);
    H5Sclose(memory);
    return result;
}

static int64_t room_of_attribute(const struct plan *plan, const struct plan_operation *operation)
{
    (void)plan;
    return operation->bytes > 0 ? operation->bytes : ATTRIBUTE_BYTES;
}

static void fill_attribute(const struct call_target *target)
{
    data_pattern_fill(target->plan->seed, target->operation->file, 0,
                      room_of_attribute(target->plan, target->operation), target->data);
}

/* All tasks write the same attribute, as HDF5 requires for metadata. */
static int write_attribute(struct call_target *target)
{
    struct hdf5_file *file = target->file->hdf5;
    char name[ATTRIBUTE_NAME_BYTES];
    hsize_t bytes = (hsize_t)room_of_attribute(target->plan, target->operation);
    hid_t space = H5Screate_simple(1, &bytes, NULL);
    snprintf(name, sizeof name, "attribute-%06ld", file->attributes++);
    hid_t attribute = H5Acreate2(file->file, name, H5T_NATIVE_UCHAR, space, H5P_DEFAULT, H5P_DEFAULT);
    int result = done(target, attribute);
    if (result == 0)
        result = done(target, H5Awrite(attribute, H5T_NATIVE_UCHAR, target->data));
    if (attribute >= 0 && H5Aclose(attribute) < 0 && result == 0)
        result = done(target, -1);
    H5Sclose(space);
    return result;
}

static int is_open(const struct open_file *file)
{
    return file->hdf5 && file->hdf5->file >= 0;
}

static void look_ahead(const struct plan *plan, struct open_file *files)
{
    hdf5_check_hints(plan);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL); /* failures are reported in one sentence by this program */
    for (long i = 0; i < plan->operation_count; i++) {
        const struct plan_operation *operation = &plan->operations[i];
        if (operation->file < 0 || files[operation->file].hdf5 || !is_of_layer(plan, operation, &hdf5_layer))
            continue;
        struct hdf5_file *file = calloc(1, sizeof *file);
        if (!file)
            fail(EXIT_FAILURE, "no memory for the file %s", files[operation->file].path);
        file->file = file->dataset = -1;
        files[operation->file].hdf5 = file;
    }
}

static const struct call_data attribute = {.room = room_of_attribute, .fill = fill_attribute};

#define NAMED .on = NAMED_FILE
#define OPEN .on = OPEN_FILE
#define READ .data = &data_read, .on = OPEN_FILE
#define WRITE .data = &data_written, .on = OPEN_FILE

/* An attribute takes three calls: create, write, close. */
#define CALLS(X) \
    X(create, 1, create(target), NAMED) \
    X(open, 1, open_path(target), NAMED) \
    X(close, 1, close_file(target), OPEN) \
    X(dataset_create, 1, create_dataset(target), OPEN) \
    X(dataset_open, 1, open_dataset(target), OPEN) \
    X(dataset_close, 1, close_dataset(target), OPEN) \
    X(write, 0, transfer(target, 1, H5FD_MPIO_INDEPENDENT), WRITE) \
    X(write_all, 0, transfer(target, 1, H5FD_MPIO_COLLECTIVE), WRITE) \
    X(read, 0, transfer(target, 0, H5FD_MPIO_INDEPENDENT), READ) \
    X(read_all, 0, transfer(target, 0, H5FD_MPIO_COLLECTIVE), READ) \
    X(flush, 1, done(target, H5Fflush(file->hdf5->file, H5F_SCOPE_GLOBAL)), OPEN) \
    X(metadata, 3, write_attribute(target), .data = &attribute, .on = OPEN_FILE)

CALLS(MAKE)

static const struct call calls[] = {CALLS(ROW){.name = NULL}};

const struct layer hdf5_layer = {.name = "hdf5", .calls = calls, .is_open = is_open, .look_ahead = look_ahead};

#endif
