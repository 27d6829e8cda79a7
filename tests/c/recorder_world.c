#include "recorder_world.h"

#include <calls/calls.h>
#include <core/lock.h>
#include <core/private_files.h>
#include <core/rawsys.h>
#include <files/descriptors.h>
#include <spool/run_directory.h>
#include <summary/cells.h>
#include <threads/thread.h>
#include <threads/windows.h>
#include <time/clock.h>
#include <time/tick_rate.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* What lies above the units under test. Without wrappers there is nothing to resolve. */
void ensio_posix_resolve(void)
{
}
void ensio_tracked_only_resolve(void)
{
}
void ensio_mmap_resolve(void)
{
}
void ensio_aio_resolve(void)
{
}
void ensio_stdio_resolve(void)
{
}

int ensio_begin(void)
{
    __atomic_store_n(&ensio_process->generation, ensio_raw_pid(), __ATOMIC_RELAXED);
    return 1;
}

int ensio_ensure_spool(void)
{
    ensio_spool_begun = ensio_clock_read();
    return ensio_spool ? 0 : ensio_spool_make(ensio_calls);
}

static char folder[256];

static void remove_folder(void)
{
    char command[sizeof folder + 10];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    CHECK(system(command) == 0);
}

void world_case(const char *name, void (*what)(void))
{
    int status;
    const char *place = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/ensio-test-XXXXXX", place ? place : "/tmp");
    CHECK(mkdtemp(folder));
    fflush(NULL);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        what();
        fflush(NULL);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    remove_folder();
    if (status != 0) {
        fprintf(stderr, "case %s failed: %s %d\n", name, WIFSIGNALED(status) ? "signal" : "status",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        exit(1);
    }
}

const char *world_folder(void)
{
    return folder;
}

void world_begin(int mode)
{
    ensio_process_map();
    CHECK(ensio_descriptors_begin() == 0);
    ensio_settings.mode = mode;
    ensio_settings.rank = -1;
    ensio_settings.exclude = "";
    snprintf(ensio_settings.host, sizeof ensio_settings.host, "host");
    snprintf(ensio_settings.program, sizeof ensio_settings.program, "test");
    snprintf(ensio_run_directory, sizeof ensio_run_directory, "%s", folder);
    snprintf(ensio_spool_directory, sizeof ensio_spool_directory, "%s", folder);
    ensio_clock_choose();
    ensio_tick_rate_begin();
    ensio_threads_begin();
    CHECK(ensio_begin());
}

void world_begin_with_spool(int mode)
{
    world_begin(mode);
    struct ensio_held held = ensio_lock();
    const int made = ensio_ensure_spool();
    ensio_unlock(held);
    CHECK(made == 0);
}

void world_limit_memory(int on)
{
    static struct rlimit before;
    if (on)
        getrlimit(RLIMIT_AS, &before);
    const struct rlimit limit = {on ? 0 : before.rlim_cur, before.rlim_max};
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    if (on && ensio_raw_memory(1 << 20)) {
        ensio_tell("left out: this machine does not limit memory\n", 45);
        _exit(0);
    }
}

static const uint8_t *map_spool(const char *name, uint64_t *bytes)
{
    char path[sizeof folder + 300];
    struct stat found;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    const int fd = open(path, O_RDONLY);
    CHECK(fd >= 0 && fstat(fd, &found) == 0);
    const uint8_t *mapped = mmap(NULL, (size_t)found.st_size, PROT_READ, MAP_SHARED, fd, 0);
    CHECK(mapped != MAP_FAILED);
    close(fd);
    *bytes = (uint64_t)found.st_size;
    return mapped;
}

const uint8_t *world_spool_file(uint64_t *bytes)
{
    return map_spool(ensio_spool_name(), bytes);
}

const uint8_t *world_spool_of(pid_t process, uint64_t *bytes)
{
    const uint8_t *found = NULL;
    char part[32];
    snprintf(part, sizeof part, "-%d-", (int)process);
    DIR *entries = opendir(folder);
    CHECK(entries);
    for (struct dirent *entry; (entry = readdir(entries)) != NULL;)
        if (strstr(entry->d_name, part) && strstr(entry->d_name, ".spool")) {
            CHECK(!found);
            found = map_spool(entry->d_name, bytes);
        }
    closedir(entries);
    CHECK(found);
    return found;
}

uint32_t world_each_window(const uint8_t *file, uint64_t bytes,
                           void (*each)(const struct ensio_window *window, uint64_t position, void *state), void *state)
{
    const uint64_t end = ((const struct ensio_spool *)(const void *)file)->allocated_bytes;
    uint32_t count = 0;
    CHECK(end <= bytes);
    for (uint64_t at = ENSIO_SPOOL_BYTES; at < end;) {
        const struct ensio_window *window = (const struct ensio_window *)(const void *)(file + at);
        if (window->magic != ENSIO_WINDOW_MAGIC) { /* a hole before a window that is aligned to large pages */
            CHECK(window->magic == 0);
            at += ENSIO_WINDOW_UNIT_BYTES;
            continue;
        }
        CHECK(window->bytes >= ENSIO_WINDOW_UNIT_BYTES && window->bytes % ENSIO_WINDOW_UNIT_BYTES == 0);
        CHECK(window->bytes <= end - at);
        each(window, at, state);
        at += window->bytes;
        count++;
    }
    return count;
}

/* A place's histogram is reached by its cell's key, so that it counts as the recorder finds it. */
static void add_cell(const struct ensio_cell *cell, void *state)
{
    struct world_sums *sums = state;
    sums->cells++;
    sums->count += cell->count;
    sums->errors += cell->errors;
    sums->moved += cell->moved;
    sums->time_ns += cell->time_ns;
    sums->inner_ns += cell->inner_ns;
    sums->nested_count += cell->nested_count;
    sums->carried_moved += cell->carried_moved;
    sums->without_bin += cell->without_bin;
    CHECK(cell->call != 0);
    CHECK(cell->count == 0 || cell->min_ns <= cell->max_ns);
    CHECK(cell->errors <= cell->count && cell->nested_count <= cell->count);
}

static void add_bins(const struct ensio_window *window, uint64_t position, void *state)
{
    const uint64_t *bins = (const uint64_t *)(const void *)((const char *)window + ENSIO_WINDOW_HEADER_BYTES);
    (void)position;
    if (window->kind == ENSIO_WINDOW_BINS)
        for (uint64_t i = 0; i < (window->bytes - ENSIO_WINDOW_HEADER_BYTES) / sizeof *bins; i++)
            *(uint64_t *)state += bins[i];
}

struct world_sums world_sums(void)
{
    struct world_sums sums = {0};
    uint64_t bytes;
    ensio_cells_each(add_cell, &sums);
    const uint8_t *file = world_spool_file(&bytes);
    world_each_window(file, bytes, add_bins, &sums.in_bins);
    munmap((void *)(uintptr_t)file, bytes);
    return sums;
}

struct ensio_event world_event(uint16_t call, uint64_t start, uint64_t duration, uint64_t requested)
{
    return (struct ensio_event){
        .start = start, .duration = duration, .requested = requested, .moved = (int64_t)requested, .call = call};
}

void world_store(uint16_t call, uint64_t first, uint64_t count)
{
    CHECK(ensio_ready(&ensio_thread));
    for (uint64_t n = first; n < first + count; n++)
        ensio_store(&ensio_thread, call, 0, (int64_t)n, n, (int64_t)n, 10 * n, 1);
}

void world_drain(void)
{
    struct ensio_held held = ensio_lock();
    ensio_windows_drain(0);
    ensio_unlock(held);
}
