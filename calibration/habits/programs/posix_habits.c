/* One process with a habit, or without it: posix_habits ACTION FOLDER [OPTION=VALUE ...]. */
#define _GNU_SOURCE
#include "options.h"
#include <sys/stat.h>
#include <unistd.h>

static const char *file_named(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* Writes pieces of a size; syncs after every few, or once at the end. */
static void write_pieces(void)
{
    const long size = number_of("size", 65536), count = number_of("count", 64), every = number_of("every", 0);
    char *bytes = buffer_of(size);
    const int file = open(file_named("data"), O_WRONLY | O_CREAT | flags_of(text_of("flags", "")), 0600);
    must(file >= 0, path);
    for (long i = 0; i < count; i++) {
        must(pwrite(file, bytes, size, i * size) == size, "pwrite");
        if (every && (i + 1) % every == 0)
            must(!(number_of("data", 0) ? fdatasync(file) : fsync(file)), "fsync");
    }
    if (number_of("end", 0))
        must(!fsync(file), "fsync");
    close(file);
}

/* Reads a file in pieces, in the order of its bytes or not, once or several times. */
static void read_pieces(void)
{
    const long size = number_of("size", 4096), pieces = number_of("pieces", 4096), passes = number_of("passes", 1);
    const int is_random = number_of("random", 0);
    char *bytes = buffer_of(size);
    const int file = open(file_named("data"), O_RDONLY);
    must(file >= 0, path);
    for (long pass = 0; pass < passes; pass++)
        for (long i = 0; i < pieces; i++) {
            /* A multiplier that has no factor in common with a power of two visits every piece once. */
            const long at = is_random ? (i * 40503 + 977) % pieces : i;
            must(pread(file, bytes, size, at * size) == size, "pread");
        }
    close(file);
}

/* Opens a file again and again, or once; writes a record every so many times. */
static void open_again(void)
{
    const long size = number_of("size", 4096), count = number_of("count", 1000);
    const int again = number_of("again", 0);
    const long every = number_of("every", 1);
    char *bytes = buffer_of(size);
    int file = -1;
    for (long i = 0; i < count; i++) {
        if (again || file < 0)
            file = open(file_named("data"), O_WRONLY | O_CREAT, 0600);
        must(file >= 0, path);
        if (i % every == 0)
            must(pwrite(file, bytes, size, i / every * size) == size, "pwrite");
        if (again)
            close(file);
    }
    if (!again)
        close(file);
}

/* Asks for the size of a file before it reads from it, each time or once. */
static void stat_again(void)
{
    const long count = number_of("count", 10000), again = number_of("again", 0), size = number_of("size", 4096);
    struct stat about;
    char *bytes = buffer_of(size);
    const int file = open(file_named("data"), O_RDWR | O_CREAT, 0600);
    must(file >= 0 && pwrite(file, bytes, size, 0) == size, "pwrite");
    for (long i = 0; i < count; i++) {
        if (again || !i)
            must(!stat(path, &about), path);
        if (i % number_of("every", 1) == 0)
            must(pread(file, bytes, size, 0) == size, "pread");
    }
    close(file);
}

/* Writes or reads records through a stream with a buffer of a size. */
static void stream_records(void)
{
    const long record = number_of("record", 256), count = number_of("count", 400000), room = number_of("buffer", 0);
    const int reads = number_of("read", 0);
    char *bytes = buffer_of(record), *buffer = room ? buffer_of(room) : NULL;
    FILE *stream = fopen(file_named("data"), reads ? "r" : "w");
    must(stream != NULL, path);
    if (room)
        setvbuf(stream, buffer, _IOFBF, room);
    for (long i = 0; i < count; i++)
        must((reads ? fread(bytes, 1, record, stream) : fwrite(bytes, 1, record, stream)) == (size_t)record, "stream");
    fclose(stream);
}

/* Computes without any I/O between two small files. */
static void compute(void)
{
    volatile double sum = 0;
    write_pieces();
    for (long i = 0; i < number_of("loops", 400000000); i++)
        sum += i;
}

/* Writes directly to the disk for some seconds, so that others wait in its queue. */
static void fill_queue(void)
{
    const long size = 1 << 20, count = 64;
    char *bytes = buffer_of(size);
    const int file = open(file_named("queue"), O_WRONLY | O_CREAT | O_DIRECT, 0600);
    must(file >= 0, path);
    alarm(number_of("seconds", 10));
    for (long i = 0;; i++)
        must(pwrite(file, bytes, size, i % count * size) == size, "pwrite");
}

int main(int argc, char **argv)
{
    static const struct action actions[] = {{"write", write_pieces}, {"read", read_pieces},      {"open", open_again},
                                            {"stat", stat_again},    {"stream", stream_records}, {"compute", compute},
                                            {"fill", fill_queue}};
    const struct action *action = action_of(actions, sizeof actions / sizeof *actions, argc, argv);
    if (!action)
        return 2;
    action->make();
    return 0;
}
