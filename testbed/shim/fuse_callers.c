#include "fuse_callers.h"

#include "ranks.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define REMEMBERED 1024
#define TRUSTED_S 1 /* a thread id is not reused sooner */

static struct {
    struct shim_caller caller;
    time_t until_s;
} remembered[REMEMBERED];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static time_t now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

/* Reads a file in /proc, with a 0 after it; NULL on failure. */
static char *text_of(int32_t tid, const char *name, size_t *length)
{
    char path[64], *text = NULL;
    size_t room = 0;
    snprintf(path, sizeof path, "/proc/%d/%s", (int)tid, name);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : 1;
    *length = 0;
    while (got > 0) {
        if (room < *length + 4096) {
            char *larger = realloc(text, room = 2 * room + 8192);
            if (!larger) {
                got = -1;
                break;
            }
            text = larger;
        }
        got = read(fd, text + *length, room - *length - 1);
        *length += got > 0 ? (size_t)got : 0;
    }
    if (fd >= 0)
        close(fd);
    if (got < 0) {
        free(text);
        return NULL;
    }
    text[*length] = '\0';
    return text;
}

struct environment {
    const char *text;
    size_t length;
};

static const char *value_in(const char *name, void *context)
{
    const struct environment *environment = context;
    const size_t length = strlen(name);
    for (const char *at = environment->text; at < environment->text + environment->length; at += strlen(at) + 1)
        if (strncmp(at, name, length) == 0 && at[length] == '=')
            return at + length + 1;
    return NULL;
}

/* The process of a thread; -1: it has ended. */
static int32_t process_of(int32_t tid)
{
    size_t length;
    char *text = text_of(tid, "status", &length);
    const char *line = text ? strstr(text, "\nTgid:") : NULL;
    const int32_t pid = line ? (int32_t)strtol(line + 6, NULL, 10) : -1;
    free(text);
    return pid;
}

int shim_fuse_caller(int32_t tid, struct shim_caller *caller)
{
    if (tid <= 0)
        return 0;
    pthread_mutex_lock(&mutex);
    const int known = remembered[tid % REMEMBERED].caller.tid == tid && remembered[tid % REMEMBERED].until_s >= now_s();
    if (known)
        *caller = remembered[tid % REMEMBERED].caller;
    pthread_mutex_unlock(&mutex);
    if (known)
        return 1;
    struct environment environment;
    char *text = text_of(tid, "environ", &environment.length);
    environment.text = text;
    *caller =
        (struct shim_caller){.pid = process_of(tid), .tid = tid, .rank = text ? shim_rank(value_in, &environment) : -1};
    free(text);
    return caller->pid > 0;
}

void shim_fuse_caller_update(const struct shim_caller *caller)
{
    pthread_mutex_lock(&mutex);
    remembered[caller->tid % REMEMBERED].caller = *caller;
    remembered[caller->tid % REMEMBERED].until_s = now_s() + TRUSTED_S;
    pthread_mutex_unlock(&mutex);
}
