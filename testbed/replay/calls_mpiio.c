/* The calls of MPI-IO. Files are opened by all tasks together, or by a task alone.
 *
 * Several pieces of a file, in one box or more, are moved by one call on a view of the file. Setting a view is
 * collective, so a collective call on a file with such pieces in any task sets a view in all tasks. If the calls of
 * every task have the same pieces again and again, further in the file by multiples of one length, one view after
 * opening serves them all. If the calls at the position of every task have the same pieces each time, these are parts
 * of one array, and views are like those of MPI_Type_create_subarray: they begin with the file and extend over the
 * array. An independent call cannot set a view; the task opens such a file separately as well, and sets the views
 * there. */
#define _GNU_SOURCE
#include "calls.h"
#include "fail.h"
#include "file_data.h"
#include "hints.h"
#include "mpi_errors.h"

#include <inttypes.h>
#include <limits.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST_UNIT (1 << 20)

struct mpiio_file {
    int is_open;
    int wants_own;       /* this task makes independent calls of several pieces */
    int has_views;       /* some task makes collective calls of several pieces */
    int has_independent; /* some task makes independent calls at offsets of the whole file */
    int is_tiled;        /* one view serves all collective calls */
    int has_view;        /* that view is set */
    int64_t tile;        /* its extent: after so many bytes the pieces come again; 0: not known yet */
    int64_t array;       /* bytes up to the end of the pieces of all tasks; 0: they are not parts of one array */
    const struct plan_operation *first; /* of the collective calls of this task */
    const struct plan_operation *part;  /* first of its calls at the position */
    MPI_File all;                       /* opened by all tasks, or by this task alone with open_alone */
    MPI_File own;                       /* opened by this task alone, if it needs that */
    MPI_Offset position;                /* position of this task in `all`, which setting a view resets */
};

/* Counts of MPI 3 are of type int, so longer data use larger units. */
static MPI_Datatype unit_of(int64_t bytes, int *count)
{
    int64_t unit = 1;
    MPI_Datatype type;
    while (bytes / unit > INT_MAX && unit < LARGEST_UNIT && bytes % (2 * unit) == 0)
        unit *= 2;
    if (bytes / unit > INT_MAX)
        fail(EXIT_USAGE,
             "the plan has a call of %" PRId64 " bytes: above %d they must be a multiple of a large power of 2", bytes,
             INT_MAX);
    *count = (int)(bytes / unit);
    PMPI_Type_contiguous((int)unit, MPI_BYTE, &type);
    PMPI_Type_commit(&type);
    return type;
}

/* The pieces of a box as a file type, relative to its offset. */
static MPI_Datatype pieces_of_box(const struct plan_operation *box)
{
    MPI_Datatype row, type;
    int64_t length = box->bytes / (box->pieces * box->planes);
    if (length > INT_MAX || box->pieces > INT_MAX || box->planes > INT_MAX)
        fail(EXIT_USAGE, "the plan has pieces of %" PRId64 " bytes: MPI describes up to %d", length, INT_MAX);
    PMPI_Type_create_hvector((int)box->pieces, (int)length, (MPI_Aint)box->stride, MPI_BYTE, &row);
    PMPI_Type_create_hvector((int)box->planes, 1, (MPI_Aint)box->plane_stride, row, &type);
    PMPI_Type_free(&row);
    return type;
}

/* The pieces of an operation as a file type, relative to its offset. */
static MPI_Datatype pieces_of(const struct plan_operation *operation)
{
    const int count = (int)(plan_next(operation) - operation);
    MPI_Datatype type, *types = calloc((size_t)count, sizeof(MPI_Datatype));
    MPI_Aint *places = calloc((size_t)count, sizeof *places);
    int *ones = calloc((size_t)count, sizeof *ones);
    if (!types || !places || !ones)
        fail(EXIT_FAILURE, "no memory for a type of %d boxes", count);
    for (int i = 0; i < count; i++) {
        types[i] = pieces_of_box(&operation[i]);
        places[i] = (MPI_Aint)(operation[i].offset - operation->offset);
        ones[i] = 1;
    }
    PMPI_Type_create_struct(count, ones, places, types, &type);
    PMPI_Type_commit(&type);
    for (int i = 0; i < count; i++)
        PMPI_Type_free(&types[i]);
    free(types);
    free(places);
    free(ones);
    return type;
}

static int set_view(struct call_target *target, MPI_File handle, const struct plan_operation *operation)
{
    MPI_Datatype type = MPI_BYTE;
    MPI_Offset from = operation ? operation->offset : 0;
    if (operation && !plan_is_contiguous(operation) && operation->bytes > 0)
        type = pieces_of(operation);
    char representation[] = "native";
    target->made++;
    int code = MPI_File_set_view(handle, from, MPI_BYTE, type, representation, MPI_INFO_NULL);
    if (type != MPI_BYTE)
        PMPI_Type_free(&type);
    return mpi_succeeded(target, code);
}

/* Sets the view in which the pieces of an operation come again after each tile. */
static int set_tiled_view(struct call_target *target, const struct mpiio_file *file, int64_t tile)
{
    const struct plan_operation *operation = target->operation;
    MPI_Datatype pieces = pieces_of(operation), placed, type;
    MPI_Aint place = (MPI_Aint)(operation->offset % tile);
    char representation[] = "native";
    PMPI_Type_create_hindexed_block(1, 1, &place, pieces, &placed);
    PMPI_Type_create_resized(placed, 0, (MPI_Aint)tile, &type);
    PMPI_Type_commit(&type);
    target->made++;
    int code = MPI_File_set_view(file->all, 0, MPI_BYTE, type, representation, MPI_INFO_NULL);
    PMPI_Type_free(&pieces);
    PMPI_Type_free(&placed);
    PMPI_Type_free(&type);
    return mpi_succeeded(target, code);
}

enum transfer { READ_AT, WRITE_AT, READ_AT_ALL, WRITE_AT_ALL, READ_ALL, WRITE_ALL, READ_NEXT, WRITE_NEXT };

static int transfer(struct call_target *target, enum transfer how, MPI_File handle, MPI_Offset at)
{
    int count, code, moved = 0;
    MPI_Status status;
    MPI_Datatype unit = unit_of(plan_bytes(target->operation), &count);
    target->made++;
    switch (how) {
    case READ_AT:
        code = MPI_File_read_at(handle, at, target->data, count, unit, &status);
        break;
    case WRITE_AT:
        code = MPI_File_write_at(handle, at, target->data, count, unit, &status);
        break;
    case READ_AT_ALL:
        code = MPI_File_read_at_all(handle, at, target->data, count, unit, &status);
        break;
    case WRITE_AT_ALL:
        code = MPI_File_write_at_all(handle, at, target->data, count, unit, &status);
        break;
    case READ_ALL:
        code = MPI_File_read_all(handle, target->data, count, unit, &status);
        break;
    case WRITE_ALL:
        code = MPI_File_write_all(handle, target->data, count, unit, &status);
        break;
    case READ_NEXT:
        code = MPI_File_read(handle, target->data, count, unit, &status);
        break;
    default:
        code = MPI_File_write(handle, target->data, count, unit, &status);
        break;
    }
    int is_good = mpi_succeeded(target, code);
    if (is_good && count > 0) {
        int bytes;
        PMPI_Get_count(&status, unit, &moved);
        PMPI_Type_size(unit, &bytes);
        target->moved = moved == MPI_UNDEFINED ? 0 : (int64_t)moved * bytes;
    }
    PMPI_Type_free(&unit);
    return is_good;
}

static int make_independent(struct call_target *target, enum transfer how)
{
    struct mpiio_file *file = target->file->mpiio;
    if (plan_is_contiguous(target->operation))
        return transfer(target, how, file->all, target->operation->offset) ? 0 : -1;
    return set_view(target, file->own, target->operation) && transfer(target, how, file->own, 0) ? 0 : -1;
}

static int make_collective(struct call_target *target, enum transfer how)
{
    struct mpiio_file *file = target->file->mpiio;
    if (!file->has_views)
        return transfer(target, how, file->all, target->operation->offset) ? 0 : -1;
    if (file->is_tiled) {
        if (!file->has_view && !set_tiled_view(target, file, file->tile))
            return -1;
        file->has_view = 1;
        const MPI_Offset at = target->operation->offset / file->tile * plan_bytes(target->operation);
        return transfer(target, how, file->all, at) ? 0 : -1;
    }
    const int is_set =
        file->array ? set_tiled_view(target, file, file->array) : set_view(target, file->all, target->operation);
    if (!is_set || !transfer(target, how, file->all, 0))
        return -1;
    if (!file->has_independent)
        return 0;
    return set_view(target, file->all, NULL) &&
                   mpi_succeeded(target, PMPI_File_seek(file->all, file->position, MPI_SEEK_SET))
               ? 0
               : -1;
}

static int make_at_position(struct call_target *target, enum transfer how)
{
    int is_good = transfer(target, how, target->file->mpiio->all, 0);
    target->file->mpiio->position += target->moved;
    return is_good ? 0 : -1;
}

static int open_on(struct call_target *target, MPI_Comm comm, MPI_Info info, MPI_File *handle)
{
    target->made++;
    return mpi_succeeded(target,
                         MPI_File_open(comm, target->file->path, MPI_MODE_RDWR | MPI_MODE_CREATE, info, handle));
}

static int open_for(struct call_target *target, MPI_Comm comm)
{
    struct mpiio_file *file = target->file->mpiio;
    MPI_Info info = hints_for_mpiio(target->plan);
    int is_good = open_on(target, comm, info, &file->all);
    if (is_good && file->wants_own)
        is_good = open_on(target, MPI_COMM_SELF, info, &file->own);
    if (info != MPI_INFO_NULL)
        PMPI_Info_free(&info);
    file->is_open = is_good;
    file->has_view = 0;
    file->position = 0;
    return is_good ? 0 : -1;
}

static int close_file(struct call_target *target)
{
    struct mpiio_file *file = target->file->mpiio;
    target->made += file->wants_own;
    file->is_open = 0;
    if (file->wants_own && !mpi_succeeded(target, MPI_File_close(&file->own)))
        return -1;
    return mpi_succeeded(target, MPI_File_close(&file->all)) ? 0 : -1;
}

static int seek_to(struct call_target *target)
{
    struct mpiio_file *file = target->file->mpiio;
    file->position = target->operation->offset;
    return mpi_succeeded(target, MPI_File_seek(file->all, file->position, MPI_SEEK_SET)) ? 0 : -1;
}

static int set_size(struct call_target *target)
{
    return mpi_succeeded(target, MPI_File_set_size(target->file->mpiio->all, target->operation->bytes)) ? 0 : -1;
}

void mpiio_seek(const struct open_file *file, int64_t offset)
{
    PMPI_File_seek(file->mpiio->all, offset, MPI_SEEK_SET);
}

static int is_open(const struct open_file *file)
{
    return file->mpiio && file->mpiio->is_open;
}

/* Calls at the position of the task, which begin with a view of their pieces. */
static int is_at_view(const char *call)
{
    return strcmp(call, "mpiio.read_all") == 0 || strcmp(call, "mpiio.write_all") == 0;
}

/* Bits that all tasks must know of each other's calls on a file. */
#define VIEWS 1
#define INDEPENDENT 2
#define UNTILED 4
#define NO_ARRAY 8

/* Whether a box is another one, `further` in the file. */
static int is_same_box(const struct plan_operation *box, const struct plan_operation *other, int64_t further)
{
    return box->offset - other->offset == further && box->bytes == other->bytes && box->pieces == other->pieces &&
           box->stride == other->stride && box->planes == other->planes && box->plane_stride == other->plane_stride;
}

/* Bytes from the first piece of a call to the end of its last. */
static int64_t extent_of(const struct plan_operation *operation)
{
    const struct plan_operation *last = plan_next(operation) - 1;
    const int64_t length = last->bytes / (last->pieces * last->planes);
    return last->offset - operation->offset + (last->planes - 1) * last->plane_stride +
           (last->pieces - 1) * last->stride + length;
}

/* Whether a call has several pieces, the same as `first`, `further` in the file. */
static int is_same_call(const struct plan_operation *operation, const struct plan_operation *first, int64_t further)
{
    const int64_t boxes = plan_next(operation) - operation;
    if (plan_is_contiguous(operation) || operation->bytes <= 0 || plan_next(first) - first != boxes)
        return 0;
    for (int64_t i = 0; i < boxes; i++)
        if (!is_same_box(&operation[i], &first[i], further))
            return 0;
    return 1;
}

/* Whether a call at the position has the same pieces as those of this task before it. */
static int is_part(struct mpiio_file *file, const struct plan_operation *operation)
{
    if (!file->part)
        file->part = operation;
    return is_same_call(operation, file->part, 0);
}

/* Whether a collective call may share a view with those of this task before it. Learns the tile from the second one. */
static int is_tile(struct mpiio_file *file, const struct plan_operation *operation)
{
    if (!file->first)
        file->first = operation;
    const struct plan_operation *first = file->first;
    const int64_t further = operation->offset - first->offset;
    if (!is_same_call(operation, first, further))
        return 0;
    if (further > 0 && !file->tile)
        file->tile = further;
    if (further == 0)
        return 1;
    return further > 0 && further % file->tile == 0 && first->offset % file->tile + extent_of(operation) <= file->tile;
}

static int is_collective(const char *call)
{
    return strcmp(call, "mpiio.read_at_all") == 0 || strcmp(call, "mpiio.write_at_all") == 0;
}

static int bit_of(const char *call, const struct plan_operation *operation)
{
    if (is_at_view(call))
        return VIEWS | UNTILED;
    if (is_collective(call))
        return plan_is_contiguous(operation) ? 0 : VIEWS;
    if (strcmp(call, "mpiio.read_at") == 0 || strcmp(call, "mpiio.write_at") == 0)
        return plan_is_contiguous(operation) ? INDEPENDENT : 0;
    if (strcmp(call, "mpiio.read") == 0 || strcmp(call, "mpiio.write") == 0)
        return INDEPENDENT;
    return 0;
}

static void look_ahead(const struct plan *plan, struct open_file *files)
{
    const size_t count = plan->file_count ? (size_t)plan->file_count : 1;
    unsigned char *bits = calloc(count, sizeof *bits);
    int64_t *ends = calloc(count, sizeof *ends);
    if (!bits || !ends)
        fail(EXIT_FAILURE, "no memory for the %ld files of the plan", plan->file_count);
    for (long i = 0; i < plan->operation_count; i++) {
        const struct plan_operation *operation = &plan->operations[i];
        if (operation->file < 0 || !is_of_layer(plan, operation, &mpiio_layer))
            continue;
        const char *call = plan->calls[operation->call];
        struct open_file *file = &files[operation->file];
        if (!file->mpiio && !(file->mpiio = calloc(1, sizeof *file->mpiio)))
            fail(EXIT_FAILURE, "no memory for the file %s", file->path);
        bits[operation->file] |= (unsigned char)bit_of(call, operation);
        if (is_collective(call) && !is_tile(file->mpiio, operation))
            bits[operation->file] |= UNTILED;
        if (is_collective(call) || (is_at_view(call) && !is_part(file->mpiio, operation)))
            bits[operation->file] |= NO_ARRAY;
        if (!plan_is_contiguous(operation) &&
            (strcmp(call, "mpiio.read_at") == 0 || strcmp(call, "mpiio.write_at") == 0))
            file->mpiio->wants_own = 1;
        if (!plan_is_contiguous(operation) && (strcmp(call, "mpiio.read") == 0 || strcmp(call, "mpiio.write") == 0))
            fail(EXIT_USAGE, "the plan has %s with several pieces, which calls at an offset can have", call);
    }
    for (long i = 0; i < plan->file_count; i++) {
        if (!files[i].mpiio || !files[i].mpiio->tile)
            bits[i] |= UNTILED;
        if (files[i].mpiio && files[i].mpiio->part)
            ends[i] = files[i].mpiio->part->offset + extent_of(files[i].mpiio->part);
        else
            bits[i] |= NO_ARRAY;
    }
    PMPI_Allreduce(MPI_IN_PLACE, ends, (int)plan->file_count, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
    PMPI_Allreduce(MPI_IN_PLACE, bits, (int)plan->file_count, MPI_UNSIGNED_CHAR, MPI_BOR, MPI_COMM_WORLD);
    for (long i = 0; i < plan->file_count; i++)
        if (files[i].mpiio) {
            files[i].mpiio->has_views = !plan->is_recorded && bits[i] & VIEWS;
            files[i].mpiio->has_independent = bits[i] & INDEPENDENT;
            files[i].mpiio->is_tiled = !(bits[i] & (UNTILED | INDEPENDENT));
            files[i].mpiio->array = bits[i] & NO_ARRAY ? 0 : ends[i];
        }
    free(bits);
    free(ends);
}

#define OPEN .on = OPEN_FILE
#define READ .data = &data_read, .on = OPEN_FILE
#define WRITE .data = &data_written, .on = OPEN_FILE
#define GOOD(is_good) ((is_good) ? 0 : -1)

/* A view is set in plans of recorded runs, whose offsets count from the start of the file. */
#define CALLS(X) \
    X(open, 0, open_for(target, MPI_COMM_WORLD), .on = NAMED_FILE) \
    X(open_alone, 0, open_for(target, MPI_COMM_SELF), .on = NAMED_FILE) \
    X(close, 1, close_file(target), OPEN) \
    X(close_alone, 1, close_file(target), OPEN) \
    X(read_at, 0, make_independent(target, READ_AT), READ, .in_boxes = 1) \
    X(write_at, 0, make_independent(target, WRITE_AT), WRITE, .in_boxes = 1) \
    X(read_at_all, 0, make_collective(target, READ_AT_ALL), READ, .in_boxes = 1) \
    X(write_at_all, 0, make_collective(target, WRITE_AT_ALL), WRITE, .in_boxes = 1) \
    X(read_all, 0, make_collective(target, READ_ALL), READ, .in_boxes = 1, .at_position = 1) \
    X(write_all, 0, make_collective(target, WRITE_ALL), WRITE, .in_boxes = 1, .at_position = 1) \
    X(read, 0, make_at_position(target, READ_NEXT), READ, .at_position = 1) \
    X(write, 0, make_at_position(target, WRITE_NEXT), WRITE, .at_position = 1) \
    X(seek, 1, seek_to(target), OPEN) \
    X(sync, 1, GOOD(mpi_succeeded(target, MPI_File_sync(file->mpiio->all))), OPEN) \
    X(sync_alone, 1, GOOD(mpi_succeeded(target, MPI_File_sync(file->mpiio->all))), OPEN) \
    X(set_view, 0, GOOD(set_view(target, file->mpiio->all, NULL)), OPEN) \
    X(set_size, 1, set_size(target), OPEN) \
    X(set_size_alone, 1, set_size(target), OPEN)

CALLS(MAKE)

static const struct call calls[] = {CALLS(ROW){.name = NULL}};

const struct layer mpiio_layer = {.name = "mpiio", .calls = calls, .is_open = is_open, .look_ahead = look_ahead};
