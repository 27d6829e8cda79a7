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

static int opened(struct open_file *file, FILE *stream)
{
    file->stream = stream;
    return stream ? 0 : -1;
}

static int open_path(struct open_file *file, int64_t flags)
{
    const char *mode = mode_of(file, flags);
    if (*mode == 'r' && flags & O_CREAT) /* no event shows whether "w+", "a+" or "r+" opened it */
        unrecorded_make(file->path);
    file->stream_is_own = 0; /* from now on there are data to keep */
    return opened(file, fopen(file->path, mode));
}

static int close_stream(struct open_file *file)
{
    FILE *stream = file->stream;
    file->stream = NULL;
    file->descriptor = -1; /* of fdopen */
    return fclose(stream) ? -1 : 0;
}

/* The result of a call that moved some bytes. */
static int moved(struct call_target *target, size_t bytes)
{
    target->moved = (int64_t)bytes;
    return ferror(target->file->stream) ? -1 : 0;
}

/* What compilers make of getc_unlocked and putc_unlocked, as often as it takes; at the end of a file once. */
static int move_inline(struct call_target *target, int writes)
{
    FILE *stream = target->file->stream;
    const size_t all = writes || target->operation->bytes ? (size_t)target->operation->bytes : 1;
    size_t done = 0;
    while (done < all &&
           (writes ? __putc_unlocked_body(target->data[done], stream) : __getc_unlocked_body(stream)) != EOF)
        done++;
    return moved(target, done);
}

/* A width stands for the text that the program made of its values. */
static int print(struct call_target *target)
{
    target->moved = fprintf(target->file->stream, "%*s", (int)target->operation->bytes, "");
    return target->moved < 0 ? -1 : 0;
}

/* The buffer of a stream of a recorded run; 0: none. */
static int set_buffer(struct open_file *file, size_t bytes)
{
    free(file->buffer);
    file->buffer = bytes ? malloc(bytes) : NULL;
    return setvbuf(file->stream, file->buffer, bytes ? _IOFBF : _IONBF, bytes) ? -1 : 0;
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

#define READ .data = &data_read, .on = OPEN_FILE
#define WRITE .data = &data_written, .on = OPEN_FILE

#define CALLS(X) \
    X(fopen, 1, open_path(file, operation->bytes), .on = NAMED_FILE) \
    X(fdopen, 1, opened(file, fdopen(file->descriptor, mode_of(file, operation->bytes))), .on = NAMED_FILE) \
    X(fclose, 1, close_stream(file), .on = OPEN_FILE) \
    X(fseek, 1, fseeko(file->stream, operation->offset, SEEK_SET), .on = OPEN_FILE) \
    X(rewind, 1, (rewind(file->stream), 0), .on = OPEN_FILE) \
    X(fread, 1, moved(target, fread(target->data, 1, (size_t)operation->bytes, file->stream)), READ) \
    X(fwrite, 1, moved(target, fwrite(target->data, 1, (size_t)operation->bytes, file->stream)), WRITE) \
    X(fprintf, 1, print(target), WRITE) \
    X(fputc, 1, moved(target, fputc(*target->data, file->stream) != EOF), WRITE) \
    X(fgetc, 1, moved(target, fgetc(file->stream) != EOF), READ) \
    X(__uflow, 1, move_inline(target, 0), READ) \
    X(__overflow, 1, move_inline(target, 1), WRITE) \
    X(ftell, 1, ftello(file->stream) < 0 ? -1 : 0, .on = OPEN_FILE) \
    X(setvbuf, 1, set_buffer(file, (size_t)operation->bytes), .on = OPEN_FILE) \
    X(fflush, 1, fflush(file->stream) ? -1 : 0, .on = OPEN_FILE)

CALLS(MAKE)

static const struct call calls[] = {CALLS(ROW){.name = NULL}};

const struct layer stdio_layer = {.name = "stdio", .calls = calls, .is_open = is_open, .look_ahead = look_ahead};
