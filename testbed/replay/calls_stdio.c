/* The calls on streams. A stream is opened for reading and writing without truncation: fopen can do that only with an
 * existing file ("r+"), or create and truncate the file ("w+"). A file that only one task opens is therefore created by
 * its first fopen, as programs do; a file that several tasks open is created before the first step, as by touch(1). */
#define _GNU_SOURCE
#include "calls.h"
#include "fail.h"
#include "file_data.h"
#include "unrecorded.h"

#include <errno.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

static int make_fopen(struct call_target *target, long count)
{
    struct open_file *file = target->file;
    target->made += count;
    file->stream = fopen(file->path, file->stream_is_own ? "w+" : "r+");
    file->stream_is_own = 0; /* from now on there are data to keep */
    return file->stream ? 0 : -1;
}

static int make_fclose(struct call_target *target, long count)
{
    FILE *stream = target->file->stream;
    target->made += count;
    target->file->stream = NULL;
    return fclose(stream) ? -1 : 0;
}

static int make_fseek(struct call_target *target, long count)
{
    target->made += count;
    return fseeko(target->file->stream, target->operation->offset, SEEK_SET);
}

static int make_fread(struct call_target *target, long count)
{
    target->made += count;
    target->moved = (int64_t)fread(target->data, 1, (size_t)target->operation->bytes, target->file->stream);
    return ferror(target->file->stream) ? -1 : 0;
}

static int make_fwrite(struct call_target *target, long count)
{
    target->made += count;
    target->moved = (int64_t)fwrite(target->data, 1, (size_t)target->operation->bytes, target->file->stream);
    return ferror(target->file->stream) ? -1 : 0;
}

static int make_fflush(struct call_target *target, long count)
{
    target->made += count;
    return fflush(target->file->stream) ? -1 : 0;
}

static int is_open(const struct open_file *file)
{
    return file->stream != NULL;
}

static void look_ahead(const struct plan *plan, struct open_file *files)
{
    int *tasks_of = calloc(plan->file_count ? (size_t)plan->file_count : 1, sizeof *tasks_of);
    if (!tasks_of)
        fail(EXIT_FAILURE, "no memory for the %ld files of the plan", plan->file_count);
    for (long i = 0; i < plan->operation_count; i++)
        if (plan->operations[i].file >= 0 && is_of_layer(plan, &plan->operations[i], &stdio_layer) &&
            strcmp(plan->calls[plan->operations[i].call], "stdio.fopen") == 0)
            tasks_of[plan->operations[i].file] = 1;
    for (long i = 0; i < plan->file_count; i++)
        files[i].stream_is_own = tasks_of[i];
    PMPI_Allreduce(MPI_IN_PLACE, tasks_of, (int)plan->file_count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (long i = 0; i < plan->file_count; i++) {
        if (tasks_of[i] < 2)
            continue;
        files[i].stream_is_own = 0;
        if (plan->rank == 0 && unrecorded_make(files[i].path))
            fail(EXIT_FAILURE, "%s cannot be made: %s", files[i].path, strerror(errno));
    }
    free(tasks_of);
}

static const struct call calls[] = {
    {.name = "fopen", .make = make_fopen, .on = NAMED_FILE},
    {.name = "fclose", .make = make_fclose, .on = OPEN_FILE},
    {.name = "fseek", .make = make_fseek, .on = OPEN_FILE},
    {.name = "fread", .make = make_fread, .data = &data_read, .on = OPEN_FILE},
    {.name = "fwrite", .make = make_fwrite, .data = &data_written, .on = OPEN_FILE},
    {.name = "fflush", .make = make_fflush, .on = OPEN_FILE},
    {.name = NULL},
};

const struct layer stdio_layer = {.name = "stdio", .calls = calls, .is_open = is_open, .look_ahead = look_ahead};
