#include "process_file.h"

#include "collector_state.h"
#include "process_summary.h"

#include <core/bounded_string.h>
#include <core/private_files.h>
#include <core/rawsys.h>
#include <spool/run_directory.h>
#include <spool/space_budget.h>
#include <spool/spool.h>
#include <threads/thread.h>
#include <time/clock.h>

#include <stddef.h>
#include <string.h>

/* A program that ends waits for the coding. What is not coded by then stays in the spool. */
#define FIRST_NS 150000000U
#define MOST_NS 5000000000U
#define SHARE 5 /* of the time that it ran */
/* Of larger files, the kernel begins to write the data before the name, so that a crash of the node does not leave a
 * name without data. */
#define FLUSHED_BYTES (256U << 10)

static struct {
    char path[ENSIO_PATH_ROOM], temporary[ENSIO_PATH_ROOM];
    int fd;
    uint64_t since_ns, due_ns, end, room; /* `room`: bytes that it may take */
    uint32_t rest_in_spool;
} file;

/* `<folder of the spool>/<name of the spool without .spool><suffix>`: 0, or -ENAMETOOLONG. */
static int name_file(char *path, const char *suffix)
{
    const char *spool = ensio_spool_name();
    struct ensio_string string = ensio_string_in(path, ENSIO_PATH_ROOM);
    ensio_add(&string, ensio_spool_directory);
    ensio_add(&string, "/");
    ensio_add_bytes(&string, spool, (uint32_t)(strlen(spool) - strlen(".spool")));
    ensio_add(&string, suffix);
    return string.full ? -ENAMETOOLONG : 0;
}

/* Returns 0, or minus an errno. */
static int write_at(const void *bytes, uint64_t length, uint64_t position)
{
    if (position + length > file.room || position + length > ensio_longest_file())
        return -ENOSPC;
    for (uint64_t done = 0; done < length;) {
        const long wrote = ensio_raw_write_at(file.fd, (const uint8_t *)bytes + done, length - done, position + done);
        if (wrote == -EINTR)
            continue;
        if (wrote <= 0)
            return wrote ? (int)wrote : -ENOSPC;
        done += (uint64_t)wrote;
    }
    return 0;
}

static int append(const void *bytes, uint64_t length)
{
    const int error = write_at(bytes, length, file.end);
    file.end += error ? 0 : length;
    return error;
}

static int write_pieces(void)
{
    for (;;) {
        uint32_t length;
        const uint8_t *piece = ensio_collect_piece(&length);
        const uint64_t position = file.end;
        const int error = append(piece, length);
        if (error)
            return error;
        ensio_collect_placed(position);
        if (length < ENSIO_PIECE_BYTES)
            return 0;
        if (ensio_clock_ns(CLOCK_MONOTONIC) > file.due_ns) {
            file.rest_in_spool = 1;
            return 0;
        }
    }
}

static int write_summary(struct ensio_job *head)
{
    struct ensio_merged merged = {0};
    uint32_t length = 0, coded_length = 0;
    if (!ensio_collect_has_summary())
        return 0;
    const struct ensio_clock_line line = ensio_collect_line();
    int error = ensio_merged_begin(&merged) == 0 ? ensio_collect_summary(&merged, &line) : -ENOMEM;
    const uint8_t *coded = error ? NULL : ensio_collect_code(&merged, &length, &coded_length);
    ensio_merged_free(&merged);
    if (!coded)
        return error ? error : -ENOMEM;
    head->summary = file.end;
    head->summary_coded = coded_length;
    head->summary_bytes = length;
    head->summary_checksum = ensio_checksum(coded, coded_length);
    return append(coded, coded_length);
}

static int write_contents(void)
{
    struct ensio_job head = {
        .magic = ENSIO_JOB_MAGIC,
        .version = ENSIO_JOB_VERSION,
        .event_bytes = sizeof(struct ensio_event),
        .spool_version = ENSIO_SPOOL_VERSION,
        .processes = 1,
    };
    uint32_t length, texts;
    file.end = sizeof head;
    int error = write_pieces();
    if (!error)
        error = write_summary(&head);
    if (error)
        return error;
    const uint8_t *shared = ensio_collect_texts(&texts);
    const uint8_t *record = ensio_collect_record(NULL, 0, &length);
    if (!record)
        return -ENOMEM;
    head.records = file.end;
    head.shared_bytes = texts < ENSIO_SHARED_BYTES ? texts : ENSIO_SHARED_BYTES;
    head.rest_in_spool = file.rest_in_spool;
    error = append(record, length);
    head.bytes = file.end;
    const uint8_t *copy = ensio_collect_copy(shared, head.shared_bytes, &length);
    error = error ? error : append(copy, length);
    head.checksum = ensio_checksum(&head, offsetof(struct ensio_job, checksum));
    head.recorder_us = (uint32_t)((ensio_clock_ns(CLOCK_MONOTONIC) - file.since_ns) / 1000);
    return error ? error : write_at(&head, sizeof head, 0);
}

static int64_t write_file(void *unused)
{
    file.fd = ensio_private_open(file.temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (file.fd < 0)
        return file.fd;
    int64_t error = write_contents();
    if (!error && file.end >= FLUSHED_BYTES)
        ENSIO_RAW(SYS_sync_file_range, file.fd, 0L, 0L, SYNC_FILE_RANGE_WRITE);
    ensio_raw_close(file.fd);
    if (!error)
        error = ENSIO_RAW(SYS_renameat, AT_FDCWD, file.temporary, AT_FDCWD, file.path);
    if (error)
        ENSIO_RAW(SYS_unlinkat, AT_FDCWD, file.temporary, 0);
    return error == -EMFILE ? -EIO : error; /* the file was opened */
}

/* Gives the space of the coded events back. */
static int64_t punch(void *unused)
{
    const int fd = ensio_spool_open_to_change();
    if (fd < 0)
        return fd;
    for (uint64_t i = 0; i < ensio_collector_windows(); i++) {
        const struct ensio_job_window *window = ensio_collector_window(i);
        const uint64_t bytes = ENSIO_WINDOW_HEADER_BYTES + (uint64_t)window->taken * sizeof(struct ensio_event),
                       whole = bytes / ENSIO_WINDOW_UNIT_BYTES * ENSIO_WINDOW_UNIT_BYTES;
        uint64_t from = ENSIO_WINDOW_UNIT_BYTES, to = whole; /* the head stays */
        if (window->window.kind == ENSIO_WINDOW_CODED) {
            from = ENSIO_BLOCKS_BYTES;
            to = window->taken < window->window.coded ? 0 : window->window.bytes;
        }
        if (ensio_collector_holds_events(window) && to > from)
            ENSIO_RAW(SYS_fallocate, fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, window->position + from,
                      to - from);
    }
    ensio_raw_close(fd);
    return 0;
}

int ensio_is_unfinalized_rank;

static int is_wanted(void)
{
    return !ensio_is_unfinalized_rank && ensio_settings.job_file == ENSIO_JOB_FILE && !ensio_collected() &&
           ensio_spool->allocated_bytes > ENSIO_SPOOL_BYTES;
}

uint64_t ensio_coding_ns(uint64_t ran_ns)
{
    const uint64_t share = FIRST_NS + ran_ns / SHARE;
    return share < MOST_NS ? share : MOST_NS;
}

/* A kill before the renaming leaves the spool as it was. After it, readers take events that are in both from the
 * file. */
int ensio_process_file_write(uint64_t since_ns)
{
    if (!is_wanted() || name_file(file.path, ".ensio") != 0 || name_file(file.temporary, ".ensio.tmp") != 0)
        return 0;
    ensio_spool_set_state(ENSIO_STATE_ENDED); /* a kill from here on changes nothing */
    const uint64_t now = ensio_clock_ns(CLOCK_MONOTONIC);
    file.due_ns = now + ensio_coding_ns(now - ensio_spool->first.monotonic_ns);
    file.since_ns = since_ns;
    file.room = ensio_budget_above_floor();
    file.rest_in_spool = !ensio_thread_alone();
    int64_t error = ensio_collect_begin();
    if (!error)
        error = ensio_with_private_files(write_file, NULL);
    if (!error)
        error = ensio_run_directory_point_to(file.path);
    if (!error && file.rest_in_spool)
        ensio_with_private_files(punch, NULL);
    ensio_collect_end(!error);
    if (error || file.rest_in_spool)
        return 0;
    if (ensio_is_in_job_file() && ensio_spool_remove() == 0)
        return 1;
    /* A signal handler ended the process in the middle of a call: the spool holds more, and all. */
    ENSIO_RAW(SYS_unlinkat, AT_FDCWD, file.path, 0);
    ensio_run_directory_unpoint(file.path);
    return 0;
}
