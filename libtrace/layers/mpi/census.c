#include "census.h"

#include <core/bounded_string.h>
#include <core/lock.h>
#include <core/private_files.h>
#include <core/rawsys.h>
#include <core/recorder.h>
#include <core/settings.h>
#include <spool/run_directory.h>
#include <time/clock.h>

#include <dirent.h>
#include <string.h>

#define CHILDREN 16 /* children of a rank in the tree: 10,240 ranks have four levels */

/* Time limits: for entries that exist unless the file system is slow to show them, for entries that will come, and an
 * addition for each rank of the job, because all ranks query the same file system. */
#define SHORT_NS 250000000U
#define SHORT_NS_A_RANK 200000U
#define LONG_NS 5000000000U
#define LONG_NS_A_RANK 2000000U

static struct {
    char folder[ENSIO_PATH_ROOM], call[ENSIO_PATH_ROOM];
    char number[24]; /* number of the call; "": none */
    int rank, tasks, spawned;
    uint32_t yes_for; /* the process for which the answer is "yes"; 0: none */
} meeting;

static void find_folder(void)
{
    struct ensio_string folder = ensio_string_in(meeting.folder, sizeof meeting.folder);
    ensio_add(&folder, ensio_run_directory);
    ensio_add(&folder, "/.meeting-");
    ensio_add_number(&folder, ensio_hash(ensio_settings.key));
    struct ensio_string call = ensio_string_in(meeting.call, sizeof meeting.call);
    ensio_add(&call, meeting.folder);
    ensio_add(&call, "/call");
}

/* The link with the decision (rank < 0), or with the answer of a rank. */
static const char *link_of(int rank)
{
    static char path[ENSIO_PATH_ROOM];
    struct ensio_string link = ensio_string_in(path, sizeof path);
    ensio_add(&link, meeting.folder);
    ensio_add(&link, "/");
    ensio_add(&link, meeting.number);
    if (rank >= 0) {
        ensio_add(&link, ".");
        ensio_add_number(&link, (uint64_t)rank);
    }
    return path;
}

static int is_there(int rank)
{
    char text[8];
    return ensio_raw_readlink(link_of(rank), text, sizeof text) > 0;
}

/* 1: yes, 0: no, -1: undecided. */
static int decision(void)
{
    char text[8];
    long length = ensio_raw_readlink(link_of(-1), text, sizeof text);
    return length == 3 && memcmp(text, "yes", 3) == 0 ? 1 : length == 2 ? 0 : -1;
}

static void decide(const char *answer)
{
    ENSIO_RAW(SYS_symlinkat, answer, AT_FDCWD, link_of(-1));
}

static int64_t open_folder(void *unused)
{
    int fd = ensio_private_open(meeting.folder, O_RDONLY | O_DIRECTORY, 0);
    if (fd >= 0)
        ensio_raw_close(fd);
    return 0;
}

/* Sleeps a little longer each time. Opening the folder makes a network file system query its server. */
static void pause_between_looks(uint64_t *pause_ns)
{
    struct timespec pause = {.tv_nsec = (long)*pause_ns};
    syscall(SYS_nanosleep, &pause, NULL);
    if (*pause_ns < 20000000)
        *pause_ns *= 2;
    struct ensio_held held = ensio_lock();
    ensio_with_private_files(open_folder, NULL);
    ensio_unlock(held);
}

static int count_spool(int folder, const struct dirent64 *entry, void *count)
{
    const size_t length = strlen(entry->d_name);
    *(int *)count += length > 6 && memcmp(entry->d_name + length - 6, ".spool", 6) == 0;
    return 0;
}

/* Whether the run directory holds at least a spool for every rank. If not, some ranks are not recorded, and waiting for
 * them is useless. This is only a hint, because other processes have spools too. */
static int64_t is_full(void *unused)
{
    int spools = 0;
    ensio_private_each_entry(ensio_run_directory, count_spool, &spools);
    return spools >= meeting.tasks;
}

static int may_be_complete(void)
{
    struct ensio_held held = ensio_lock();
    const int64_t full = ensio_with_private_files(is_full, NULL);
    ensio_unlock(held);
    return full > 0;
}

static uint64_t patience_ns(uint64_t at_least, uint64_t a_rank)
{
    return at_least + a_rank * (uint64_t)meeting.tasks;
}

static void lay_call(void)
{
    uint64_t number = 0;
    if (ENSIO_RAW(SYS_getrandom, &number, sizeof number, 0) != sizeof number)
        number = ensio_clock_ns(CLOCK_REALTIME) * 1000003U + ensio_raw_pid();
    struct ensio_string text = ensio_string_in(meeting.number, sizeof meeting.number);
    ensio_add_number(&text, number);
    ENSIO_RAW(SYS_mkdirat, AT_FDCWD, meeting.folder, 0700);
    /* Replaces one that an earlier launch may have left. */
    ENSIO_RAW(SYS_symlinkat, meeting.number, AT_FDCWD, link_of(0));
    if (ENSIO_RAW(SYS_renameat2, AT_FDCWD, link_of(0), AT_FDCWD, meeting.call, 0) != 0)
        meeting.number[0] = '\0';
}

/* Reads the number of the call, unless it is decided already: then an earlier launch left it. */
static int find_call(void)
{
    const uint64_t until = ensio_clock_ns(CLOCK_MONOTONIC) + patience_ns(SHORT_NS, SHORT_NS_A_RANK);
    for (uint64_t pause_ns = 200000;; pause_between_looks(&pause_ns)) {
        long length = ensio_raw_readlink(meeting.call, meeting.number, sizeof meeting.number - 1);
        meeting.number[length > 0 ? length : 0] = '\0';
        if (length > 0 && !strchr(meeting.number, '/') && decision() < 0)
            return 1;
        if (ensio_clock_ns(CLOCK_MONOTONIC) > until)
            return 0;
    }
}

/* Waits until this rank's children in the tree have answered, or waiting has become useless. */
static int children_answered(void)
{
    const uint64_t begun = ensio_clock_ns(CLOCK_MONOTONIC), a_short = patience_ns(SHORT_NS, SHORT_NS_A_RANK);
    const int64_t first = (int64_t)meeting.rank * CHILDREN + 1;
    const int64_t end = first + CHILDREN < meeting.tasks ? first + CHILDREN : meeting.tasks;
    int64_t next = first;
    for (uint64_t pause_ns = 200000;; pause_between_looks(&pause_ns)) {
        while (next < end && is_there((int)next))
            next++;
        if (next >= end)
            return 1;
        const uint64_t waited = ensio_clock_ns(CLOCK_MONOTONIC) - begun;
        if (decision() >= 0 || waited > patience_ns(LONG_NS, LONG_NS_A_RANK))
            return 0;
        if (meeting.rank == 0 && waited > a_short && !may_be_complete())
            return 0;
    }
}

static int ask(void)
{
    if (meeting.rank == 0) {
        if (!meeting.number[0])
            lay_call();
        if (!meeting.number[0])
            return 0;
        decide(children_answered() ? "yes" : "no");
        return decision() == 1;
    }
    if (meeting.number[0]) /* the launcher was wrong: this is not rank 0 */
        decide("no");
    /* An existing answer comes from an earlier launch, and belongs to its call. */
    if (!find_call() || !children_answered() || ENSIO_RAW(SYS_symlinkat, "here", AT_FDCWD, link_of(meeting.rank)) != 0)
        return 0;
    for (int limit = 0; limit < 2; limit++) {
        const uint64_t until = ensio_clock_ns(CLOCK_MONOTONIC) + patience_ns(LONG_NS, LONG_NS_A_RANK);
        for (uint64_t pause_ns = 200000; ensio_clock_ns(CLOCK_MONOTONIC) < until; pause_between_looks(&pause_ns)) {
            const int decided = decision();
            if (decided == 0)
                ENSIO_RAW(SYS_unlinkat, AT_FDCWD, link_of(meeting.rank), 0);
            if (decided >= 0)
                return decided;
        }
        decide("no"); /* if even this fails, rank 0 gets the same time again */
    }
    return decision() == 1;
}

void ensio_census_post(void)
{
    if (!ensio_ready(&ensio_thread) || ensio_settings.rank != 0 || ensio_settings.tasks == 1 || meeting.number[0])
        return;
    int error = errno;
    find_folder();
    lay_call();
    errno = error;
}

int ensio_census_agree(int rank, int tasks, int spawned)
{
    if (!ensio_process->generation || meeting.tasks)
        return ensio_census_all_recorded();
    int error = errno;
    find_folder();
    meeting.rank = rank;
    meeting.tasks = tasks;
    meeting.spawned = spawned;
    if (tasks == 1 || (!spawned && ask()))
        meeting.yes_for = ensio_raw_pid();
    errno = error;
    return ensio_census_all_recorded();
}

void ensio_census_cleanup(int last)
{
    int error = errno;
    if (last)
        ENSIO_RAW(SYS_unlinkat, AT_FDCWD, meeting.folder, AT_REMOVEDIR);
    else if (meeting.rank == 0)
        ENSIO_RAW(SYS_unlinkat, AT_FDCWD, meeting.call, 0);
    if (!last && meeting.number[0])
        ENSIO_RAW(SYS_unlinkat, AT_FDCWD, link_of(meeting.rank == 0 ? -1 : meeting.rank), 0);
    errno = error;
}

int ensio_census_all_recorded(void)
{
    return meeting.yes_for != 0 && meeting.yes_for == ensio_process->generation;
}

const char *ensio_census_why_not(void)
{
    return meeting.spawned ? "MPI_Comm_spawn started the tasks" : "not all ranks are recorded";
}
