#define _GNU_SOURCE
#include "output.h"

#include "fail.h"
#include "profile.h"
#include "recorded.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BUFFER_BYTES (1 << 20)

static _Noreturn void refuse(const struct output *output, const char *name)
{
    fail(EXIT_FAILURE, "%s/%s cannot be written: %s", output->folder, name, strerror(errno));
}

FILE *output_open(const struct output *output, const char *name)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s/%s", output->folder, name) >= (int)sizeof path)
        errno = ENAMETOOLONG;
    else {
        FILE *file = fopen(path, "wb");
        if (file) {
            setvbuf(file, NULL, _IOFBF, BUFFER_BYTES);
            return file;
        }
    }
    refuse(output, name);
}

void output_close(const struct output *output, const char *name, FILE *file)
{
    if (ferror(file) | fclose(file))
        refuse(output, name);
}

void output_array(const struct output *output, const char *name, const void *entries, size_t bytes, size_t count)
{
    FILE *file = output_open(output, name);
    if (fwrite(entries, bytes, count, file) != count)
        refuse(output, name);
    output_close(output, name, file);
}

int64_t *output_number(const struct output *output, const char *name)
{
    FILE *file = output_open(output, name);
    const int64_t none = 0;
    /* Written, because a page of a hole of a full disk cannot be changed. */
    if (fwrite(&none, sizeof none, 1, file) != 1)
        refuse(output, name);
    output_close(output, name, file);
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", output->folder, name);
    const int descriptor = open(path, O_RDWR | O_CLOEXEC);
    void *number =
        descriptor < 0 ? MAP_FAILED : mmap(NULL, sizeof none, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (number == MAP_FAILED)
        refuse(output, name);
    close(descriptor);
    return number;
}

void output_begin(struct output *output, const char *folder, struct profile *profile)
{
    *output = (struct output){.folder = folder, .profile = profile};
    if (!profile)
        output->events = output_open(output, "events");
}

void output_event(struct output *output, const struct output_event *event, int64_t inner_ns)
{
    output->event_count++;
    if (!event->depth)
        output->bytes_moved += (uint64_t)event->moved;
    if (output->profile)
        profile_add(output->profile, event, inner_ns);
    else if (fwrite_unlocked(event, sizeof *event, 1, output->events) != 1)
        refuse(output, "events");
}
