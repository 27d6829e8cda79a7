/* The cost of a call in the model of a parallel file system: begin, advance, take. Prints "KIND TASKS NS" lines: thread
 * CPU time per call, the minimum of several rounds. */
#define _GNU_SOURCE
#include "../testbed/pfsmodel/pfsmodel.h"
#include "../testbed/pfsmodel/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define ROUNDS 3

struct kind {
    const char *name;
    uint16_t operation;
    uint16_t through;
    int64_t bytes;
    long calls;
};

static const struct kind kinds[] = {
    {"stat", PFS_META, 0, 0, 200000},
    {"write_4_KiB_cached", PFS_WRITE, 0, 4096, 200000},
    {"write_4_KiB_through", PFS_WRITE, 1, 4096, 200000},
    {"write_1_MiB_through", PFS_WRITE, 1, 1 << 20, 200000},
    {"read_64_KiB_in_a_row", PFS_READ, 0, 65536, 200000},
    {"write_64_MiB", PFS_WRITE, 0, 64 << 20, 20000},
};

static double thread_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* Each task makes its next call when its previous one is complete. */
static double ns_of_a_call(const struct pfs_settings *settings, const struct kind *kind, int tasks)
{
    const struct pfs_limits limits = {.tasks = tasks, .nodes = (tasks + 3) / 4, .files = 1};
    const size_t bytes = pfs_bytes(settings, &limits);
    struct pfs *model = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    int64_t *places = calloc((size_t)tasks, sizeof *places);
    if (model == MAP_FAILED || !places) {
        fprintf(stderr, "no memory for a model of %zu bytes\n", bytes);
        exit(1);
    }
    pfs_create(model, settings, &limits, 1);
    struct pfs_call call = {.operation = kind->operation, .through = kind->through, .bytes = kind->bytes};
    call.file = pfs_file(model, 1);
    for (int task = 0; task < tasks; task++)
        places[task] = (int64_t)task << 40;
    double began = thread_ns();
    long left = kind->calls;
    int64_t now_ns = 0, done_ns;
    for (int task = 0; task < tasks; task++) {
        call.task = task;
        call.offset = places[task];
        places[task] += kind->bytes;
        pfs_begin(model, now_ns, &call);
    }
    while (left > 0) {
        int32_t task = pfs_take(model, &done_ns);
        if (task < 0) {
            now_ns = pfs_next_ns(model);
            pfs_advance(model, now_ns);
            continue;
        }
        left--;
        call.task = task;
        call.offset = places[task];
        places[task] += kind->bytes;
        pfs_begin(model, done_ns, &call);
    }
    double took = thread_ns() - began;
    munmap(model, bytes);
    free(places);
    return took / (double)kind->calls;
}

int main(void)
{
    struct pfs_settings settings;
    char why[256];
    if (pfs_settings_read(&settings, "", why, sizeof why)) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        for (int tasks = 64; tasks <= 16384; tasks *= 16) {
            double least = ns_of_a_call(&settings, &kinds[i], tasks);
            for (int round = 1; round < ROUNDS; round++) {
                double other = ns_of_a_call(&settings, &kinds[i], tasks);
                least = other < least ? other : least;
            }
            printf("%s %d %.1f\n", kinds[i].name, tasks, least);
        }
    return 0;
}
