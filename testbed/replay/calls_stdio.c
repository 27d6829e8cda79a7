/* The calls on streams. A stream is opened for reading and writing without truncation: fopen can do that only with an
 * existing file ("r+"), or create and truncate the file ("w+"). A file that only one task opens is therefore created by
 * its first fopen, as programs do; a file that several tasks open is created before the first step, as by touch(1). */
#define _GNU_SOURCE
#include "calls.h"
#include "fail.h"
#include "file_data.h"
#include "unrecorded.h"

#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

/* Plans of recorded runs have the mode of a stream as flags of open, the others none. */
static const char *mode_of(const struct open_file *file, int64_t flags)
{
    if (!flags)
        return file->stream_is_own ? "w+" : "r+";
    if (flags & O_APPEND)
        return flags & O_RDWR ? "a+" : "a";
    if (flags & O_TRUNC)
        return flags & O_RDWR ? "w+" : "w";
    return flags & O_RDWR ? "r+" : "r";
}

static int make_fopen(struct call_target *target, long count)
{
    struct open_file *file = target->file;
    target->made += count;
    file->stream = fopen(file->path, mode_of(file, target->operation->bytes));
    file->stream_is_own = 0; /* from now on there are data to keep */
    return file->stream ? 0 : -1;
}

static int make_fdopen(struct call_target *target, long count)
{
    struct open_file *file = target->file;
    target->made += count;
    file->stream = fdopen(file->descriptor, mode_of(file, target->operation->bytes));
    return file->stream ? 0 : -1;
}

static int make_fclose(struct call_target *target, long count)
{
    FILE *stream = target->file->stream;
    target->made += count;
    target->file->stream = NULL;
    target->file->descriptor = -1; /* of fdopen */
    return fclose(stream) ? -1 : 0;
}

static int make_fseek(struct call_target *target, long count)
{
    target->made += count;
    return fseeko(target->file->stream, target->operation->offset, SEEK_SET);
}

static int make_rewind(struct call_target *target, long count)
{
    target->made += count;
    rewind(target->file->stream);
    return 0;
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

/* A width stands for the text that the program made of its values. */
static int make_fprintf(struct call_target *target, long count)
{
    target->made += count;
    target->moved = fprintf(target->file->stream, "%*s", (int)target->operation->bytes, "");
    return target->moved < 0 ? -1 : 0;
}

static int make_fputc(struct call_target *target, long count)
{
    target->made += count;
    target->moved = fputc(*target->data, target->file->stream) != EOF;
    return target->moved ? 0 : -1;
}

static int make_fgetc(struct call_target *target, long count)
{
    target->made += count;
    target->moved = fgetc(target->file->stream) != EOF;
    return ferror(target->file->stream) ? -1 : 0;
}

static int make_ftell(struct call_target *target, long count)
{
    target->made += count;
    return ftello(target->file->stream) < 0 ? -1 : 0;
}

/* The buffer of a stream of a recorded run; 0: none. */
static int make_setvbuf(struct call_target *target, long count)
{
    const size_t bytes = (size_t)target->operation->bytes;
    free(target->file->buffer);
    target->file->buffer = bytes ? malloc(bytes) : NULL;
    target->made += count;
    return setvbuf(target->file->stream, target->file->buffer, bytes ? _IOFBF : _IONBF, bytes) ? -1 : 0;
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
    {.name = "fdopen", .make = make_fdopen, .on = NAMED_FILE},
    {.name = "fclose", .make = make_fclose, .on = OPEN_FILE},
    {.name = "fseek", .make = make_fseek, .on = OPEN_FILE},
    {.name = "rewind", .make = make_rewind, .on = OPEN_FILE},
    {.name = "fread", .make = make_fread, .data = &data_read, .on = OPEN_FILE},
    {.name = "fwrite", .make = make_fwrite, .data = &data_written, .on = OPEN_FILE},
    {.name = "fprintf", .make = make_fprintf, .data = &data_written, .on = OPEN_FILE},
    {.name = "fputc", .make = make_fputc, .data = &data_written, .on = OPEN_FILE},
    {.name = "fgetc", .make = make_fgetc, .data = &data_read, .on = OPEN_FILE},
    {.name = "ftell", .make = make_ftell, .on = OPEN_FILE},
    {.name = "setvbuf", .make = make_setvbuf, .on = OPEN_FILE},
    {.name = "fflush", .make = make_fflush, .on = OPEN_FILE},
    {.name = NULL},
};

const struct layer stdio_layer = {.name = "stdio", .calls = calls, .is_open = is_open, .look_ahead = look_ahead};
