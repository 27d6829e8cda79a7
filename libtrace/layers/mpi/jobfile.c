#include "jobfile.h"

#include "census.h"
#include "node_gather.h"
#include "summary_reduce.h"

#include <core/bounded_string.h>
#include <core/lock.h>
#include <core/rawsys.h>
#include <jobfile/collector.h>
#include <spool/encode.h>
#include <spool/run_directory.h>
#include <spool/spool.h>
#include <time/clock.h>

#include <ensio/jobfile.h>
#include <stddef.h>
#include <string.h>

#define TEMPORARY "job.ensio.tmp-"
#define MOST_FILES 1000 /* of several launches in one run directory */

ENSIO_PMPI_DECLARE(Bcast, (void *bytes, int count, uintptr_t type, int root, uintptr_t communicator))

static char temporary[ENSIO_PATH_ROOM];

/* `<run directory>/<name><number>`, without a number that is 0. */
static void name_file(char *path, const char *name, uint64_t number, const char *suffix)
{
    struct ensio_string string = ensio_string_in(path, ENSIO_PATH_ROOM);
    ensio_add(&string, ensio_run_directory);
    ensio_add(&string, "/");
    ensio_add(&string, name);
    if (number)
        ensio_add_number(&string, number);
    ensio_add(&string, suffix);
}

/* Rank 0 makes the file and broadcasts its name to all leaders: 0, or an errno, the same in all ranks. */
static int open_file(struct ensio_node_gather *all)
{
    uint64_t number = ensio_clock_ns(CLOCK_REALTIME) * 1000U + ensio_raw_pid() % 1000U;
    if (all->rank == 0) {
        name_file(temporary, TEMPORARY, number, "");
        all->error = ensio_node_gather_make(temporary);
    }
    if (ENSIO_PMPI(Bcast)(&number, 1, all->mpi->uint64, 0, all->mpi->world) != 0)
        all->error = EIO;
    if (ensio_node_gather_max(all, all->error) != 0)
        return 0;
    if (all->node_rank == 0 && all->rank != 0)
        name_file(temporary, TEMPORARY, number, "");
    all->path = all->node_rank == 0 && !all->error ? temporary : NULL;
    all->end = sizeof(struct ensio_job);
    return ensio_node_gather_max(all, all->error) == 0;
}

static int write_events(struct ensio_node_gather *all)
{
    int64_t state;
    do {
        uint32_t length;
        const uint8_t *piece = ensio_collect_piece(&length);
        ensio_collect_placed(ensio_node_gather_append(all, piece, length));
        state = ensio_node_gather_max(all, all->error ? 2 : length >= ENSIO_PIECE_BYTES);
    } while (state == 1);
    return state == 0;
}

/* Broadcasts the first rank's texts as a dictionary: calls, settings and most paths are the same in all ranks. */
static uint8_t *share_texts(struct ensio_node_gather *all, uint32_t *length)
{
    const uint8_t *own = ensio_collect_texts(length);
    if (*length > ENSIO_SHARED_BYTES)
        *length = ENSIO_SHARED_BYTES;
    uint64_t shared = *length;
    if (ENSIO_PMPI(Bcast)(&shared, 1, all->mpi->uint64, 0, all->mpi->world) != 0)
        all->error = EIO;
    *length = (uint32_t)shared;
    uint8_t *texts = ensio_raw_memory(ENSIO_SHARED_BYTES);
    if (!texts)
        all->error = ENOMEM;
    if (ensio_node_gather_max(all, all->error) == 0) {
        if (texts && all->rank == 0)
            memcpy(texts, own, shared);
        if (ENSIO_PMPI(Bcast)(texts, (int)shared, all->mpi->byte, 0, all->mpi->world) != 0)
            all->error = EIO;
    }
    return texts;
}

static int write_records(struct ensio_node_gather *all, struct ensio_job *head)
{
    uint32_t shared_bytes, length = 0;
    uint8_t *shared = share_texts(all, &shared_bytes);
    const uint8_t *record = NULL;
    if (shared && !all->error) {
        record = ensio_collect_record(shared, all->rank == 0 ? 0 : shared_bytes, &length);
        if (!record)
            all->error = ENOMEM;
    }
    const uint64_t records = ensio_node_gather_append(all, record, length);
    if (all->rank == 0 && !all->error) {
        head->processes = (uint32_t)all->tasks;
        head->bytes = all->end;
        head->records = records;
        head->shared_bytes = shared_bytes;
        head->checksum = ensio_checksum(head, offsetof(struct ensio_job, checksum));
        all->error = ensio_node_gather_write(all, head, sizeof *head, 0, 0);
        const uint8_t *copy = ensio_collect_copy(shared, shared_bytes, &length);
        if (!all->error)
            all->error = ensio_node_gather_write(all, copy, length, head->bytes, 0);
    }
    if (shared)
        ensio_raw_unmap(shared, ENSIO_SHARED_BYTES);
    return ensio_node_gather_max(all, all->error) == 0;
}

/* Renames the file to a name that does not exist yet. */
static int rename_file(void)
{
    static char path[ENSIO_PATH_ROOM];
    long result = -EEXIST;
    for (uint64_t number = 1; number < MOST_FILES && result == -EEXIST; number++) {
        name_file(path, number == 1 ? "job" : "job-", number == 1 ? 0 : number, ".ensio");
        result = ENSIO_RAW(SYS_renameat2, AT_FDCWD, temporary, AT_FDCWD, path, 1 /* RENAME_NOREPLACE */);
        if (result != -EINVAL && result != -ENOSYS)
            continue;
        result = ENSIO_RAW(SYS_linkat, AT_FDCWD, temporary, AT_FDCWD, path, 0);
        if (result == 0)
            ENSIO_RAW(SYS_unlinkat, AT_FDCWD, temporary, 0);
    }
    return (int)-result;
}

/* Syncs what this leader has written, before anything relies on it. */
static void finish_file(struct ensio_node_gather *all)
{
    if (all->path && !all->error)
        all->error = ensio_node_gather_write(all, NULL, 0, 0, 1);
    all->path = NULL;
}

static int write_file(struct ensio_node_gather *all)
{
    struct ensio_job head = {
        .magic = ENSIO_JOB_MAGIC,
        .version = ENSIO_JOB_VERSION,
        .event_bytes = sizeof(struct ensio_event),
        .spool_version = ENSIO_SPOOL_VERSION,
    };
    int whole = open_file(all) && write_events(all) && ensio_summary_reduce(all, &head) && write_records(all, &head);
    finish_file(all);
    whole = ensio_node_gather_max(all, !whole || all->error) == 0;
    if (all->rank == 0 && whole)
        all->error = rename_file();
    return ensio_node_gather_max(all, !whole || all->error) == 0;
}

/* Stores the reason in the first rank's spool only, for people. */
static void say_why_not(int error)
{
    char text[256];
    struct ensio_string property = ensio_string_in(text, sizeof text);
    ensio_add(&property, "no_job_file=");
    ensio_add_error(&property, error);
    struct ensio_held held = ensio_lock();
    if (ensio_spool)
        ensio_text_store(ENSIO_TEXT_PROPERTIES, 0, text, property.length + 1);
    ensio_unlock(held);
}

void ensio_job_file_write(void)
{
    const int error = errno;
    const struct ensio_mpi *mpi = ensio_mpi();
    struct ensio_node_gather all = {.mpi = mpi};
    if (!mpi || !ensio_census_all_recorded())
        return;
    /* From here on every rank makes the same MPI calls, even after an error. */
    const int wanted = ensio_settings.job_file != ENSIO_JOB_FILE_NONE;
    if (ensio_node_gather_max(&all, !wanted) == 0) {
        const int begun = ensio_collect_begin();
        int written = 0;
        if (ensio_node_gather_begin(&all, mpi)) {
            all.error = -begun;
            if (ensio_node_gather_max(&all, all.error) == 0)
                written = write_file(&all);
            const int64_t reason = written ? 0 : ensio_node_gather_max(&all, all.error);
            if (all.rank == 0 && !written) {
                if (temporary[0])
                    ENSIO_RAW(SYS_unlinkat, AT_FDCWD, temporary, 0);
                say_why_not((int)reason);
            }
        }
        ensio_node_gather_end(&all);
        ensio_collect_end(written);
    }
    errno = error;
}
