#include "spool.h"

#include "encode.h"
#include "mounts.h"
#include "process_facts.h"
#include "run_directory.h"
#include "space_budget.h"

#include <core/bounded_string.h>
#include <core/lock.h>
#include <core/private_files.h>
#include <core/rawsys.h>
#include <core/recorder.h>
#include <core/settings.h>
#include <time/clock.h>

#include <linux/fs.h>
#include <linux/magic.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/vfs.h>

struct ensio_spool *ensio_spool;
struct ensio_losses *ensio_losses;
struct ensio_flights *ensio_flights;
uint32_t ensio_spool_number;
struct ensio_clock_reading ensio_spool_begun;

#define WINDOW_KINDS (ENSIO_WINDOW_CODED + 1)

static char spool_path[ENSIO_PATH_ROOM];
static struct ensio_window *text_window;  /* receives text entries when the first window is full */
static uint64_t made_bytes[WINDOW_KINDS]; /* bytes of all windows of a kind */
static int text_is_essential;
static const char *calls_due; /* the table of calls, until it is stored: before all windows but those of texts */
static uint32_t drop_reason;  /* ENSIO_DROPPED_...: why the last request for a window of events failed */

/* Texts, phases and regions, samples of counters, and windows that only feed the summary may take this much regardless
 * of the budget. Beyond it, a thread's calls reach the summary through private memory. */
#define EXEMPT_SCRATCH_BYTES (4 << 20)
#define EXEMPT_TEXT_BYTES (192 << 10)
#define EXEMPT_MARKS_BYTES (256 << 10)
#define EXEMPT_SURROUNDINGS_BYTES (128 << 10)

/* The first window has room for the texts of many files. Processes without calls need a few pages of it. */
#define FIRST_POPULATED_BYTES (12 << 10)
#define MORE_POPULATED_BYTES (8 << 10)
#define TEXT_OF_ENDS_BYTES 1024

#define TEXT_WINDOW_BYTES 65536

/* The file is longer than its contents. Windows are mapped and filled without a descriptor, so the file must be long
 * enough; the unused part is a hole. A part of the length is reserved for the summary. */
#define FIRST_LENGTH_BYTES (16ULL << 20)
#define MOST_GROWTH_BYTES (1ULL << 30)
#define SUMMARY_BYTES (4ULL << 20)
#define LENGTH_WITHOUT_RIGHTS_BYTES (256ULL << 20)
#define LEAST_RESERVED_BYTES (128ULL << 10)
#define MOST_TRIED_BYTES (8ULL << 30)

#ifndef BCACHEFS_SUPER_MAGIC
#define BCACHEFS_SUPER_MAGIC 0xca451a4e
#endif
#define ZFS_SUPER_MAGIC 0x2fc12fc1

#define REFUSED_TIMES 64                   /* multiples of the time that the refusal took */
#define LONGEST_REFUSAL_TICKS (1ULL << 31) /* about a second */

static struct {
    uint64_t length;
    /* all of it has blocks on disk: its file system writes every changed page to a new place */
    int is_reserved;
    dev_t device;
    ino_t inode;
    uint64_t first_populated; /* bytes of the first window that may be stored to */
    /* A page behind the last window, never touched: further windows grow from its mapping. */
    char *end;
} file;

static uint64_t round_up(uint64_t bytes, uint64_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

static uint64_t page_bytes(void)
{
    return getauxval(AT_PAGESZ);
}

uint64_t ensio_longest_file(void)
{
    struct rlimit limit;
    if (ENSIO_RAW(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &limit) != 0 || limit.rlim_cur > INT64_MAX)
        return INT64_MAX;
    return limit.rlim_cur / page_bytes() * page_bytes();
}

/* File systems that write every changed page to a new place (btrfs) need space for the change; at the end of a quota
 * there is none, which raises SIGBUS. With a flag (FS_NOCOW_FL) they keep a file's pages in place; other file systems
 * refuse it, and keep them anyway. Blocks of all pages are then reserved at once, for the change of any of them. */
static void keep_in_place(int fd)
{
    unsigned flags = 0;
    struct statfs system;
    file.is_reserved = ENSIO_RAW(SYS_fstatfs, fd, &system) == 0 &&
                       (system.f_type == BTRFS_SUPER_MAGIC || system.f_type == BCACHEFS_SUPER_MAGIC ||
                        system.f_type == ZFS_SUPER_MAGIC);
    if (ENSIO_RAW(SYS_ioctl, fd, FS_IOC_GETFLAGS, &flags) == 0 && !(flags & FS_NOCOW_FL)) {
        flags |= FS_NOCOW_FL;
        ENSIO_RAW(SYS_ioctl, fd, FS_IOC_SETFLAGS, &flags);
    }
}

/* Sets the length of the file: 0, or minus an errno. With a quota, as much space again must be free, and stays free,
 * because at the end of a quota a changed page waits until others are written. Setting the length again releases what
 * is reserved beyond it. */
static int64_t give_length(int fd, uint64_t length)
{
    const int reserves = file.is_reserved && length > file.length;
    const int64_t reserved = reserves ? ENSIO_RAW(SYS_fallocate, fd, FALLOC_FL_KEEP_SIZE, 0, 2 * length) : 0;
    if (reserved && reserved != -EOPNOTSUPP)
        return reserved;
    const int64_t done = ENSIO_RAW(SYS_ftruncate, fd, length);
    return done || !reserves ? done : ENSIO_RAW(SYS_ftruncate, fd, length);
}

/* Users cannot query the quota groups of btrfs, so this tries to reserve space. UINT64_MAX: no limit that matters. */
static uint64_t room_in_quota(int fd)
{
    struct statfs system;
    if (!file.is_reserved || ENSIO_RAW(SYS_fstatfs, fd, &system) != 0)
        return UINT64_MAX;
    const uint64_t free = system.f_bavail * (uint64_t)system.f_bsize / 2;
    uint64_t room = free < MOST_TRIED_BYTES ? free : MOST_TRIED_BYTES;
    int64_t done = ENSIO_RAW(SYS_fallocate, fd, FALLOC_FL_KEEP_SIZE, 0, room);
    if (!done || done != -EDQUOT)
        room = UINT64_MAX;
    while (done == -EDQUOT && (room /= 2) >= LEAST_RESERVED_BYTES)
        done = ENSIO_RAW(SYS_fallocate, fd, FALLOC_FL_KEEP_SIZE, 0, room);
    ENSIO_RAW(SYS_ftruncate, fd, 0UL);
    return room;
}

/* The first length, as long as it is available. Reserved blocks count as used, so it is shorter then. */
static int64_t give_first_length(int fd, uint64_t least)
{
    const uint64_t most = ensio_longest_file(), wanted = file.is_reserved ? SUMMARY_BYTES : FIRST_LENGTH_BYTES;
    uint64_t length = wanted < most ? wanted : most;
    int64_t done = length < least ? -EFBIG : give_length(fd, length);
    while (done && file.is_reserved && length / 2 >= LEAST_RESERVED_BYTES)
        done = give_length(fd, length /= 2);
    if (!done)
        file.length = length;
    return done;
}

/* Gives the new file its length and maps its first window with one page behind it: the window, or NULL with the reason
 * in `error`. */
static struct ensio_spool *map_first(int fd, int64_t *error)
{
    const uint64_t bytes = ENSIO_SPOOL_BYTES + page_bytes();
    struct stat found;
    file.length = 0;
    *error = give_first_length(fd, bytes);
    if (!*error)
        *error = ENSIO_RAW(SYS_newfstatat, fd, "", &found, AT_EMPTY_PATH);
    if (*error)
        return NULL;
    file.device = found.st_dev;
    file.inode = found.st_ino;
    char *mapped = ensio_raw_map(bytes, MAP_SHARED, fd, 0);
    /* Also for all windows that grow from it: reading ahead in a hole would cost a millisecond and memory. */
    if (mapped)
        madvise(mapped, bytes, MADV_RANDOM);
    file.first_populated = FIRST_POPULATED_BYTES;
    *error = mapped ? ensio_raw_populate(mapped, FIRST_POPULATED_BYTES) : -ENOMEM;
    if (mapped && *error)
        ensio_raw_unmap(mapped, bytes);
    if (*error)
        return NULL;
    file.end = mapped + ENSIO_SPOOL_BYTES;
    return (struct ensio_spool *)(void *)mapped;
}

/* Changes the length of the file, if the name still refers to it. */
static int64_t set_length(void *length)
{
    struct stat found;
    int fd = ensio_spool_open_to_change();
    if (fd < 0)
        return fd;
    int64_t done = ENSIO_RAW(SYS_newfstatat, fd, "", &found, AT_EMPTY_PATH);
    if (!done && (found.st_dev != file.device || found.st_ino != file.inode))
        done = -ENOENT;
    if (!done)
        done = give_length(fd, *(const uint64_t *)length);
    ensio_raw_close(fd);
    return done;
}

/* Extends the file to at least this length: 0, or minus an errno. It doubles, so that this is rare. */
static int64_t lengthen(uint64_t least)
{
    const uint64_t most = ensio_longest_file(), step = file.is_reserved ? SUMMARY_BYTES : MOST_GROWTH_BYTES;
    const uint64_t more = file.length < step ? file.length : step;
    uint64_t length = file.length + more > least ? file.length + more : round_up(least, page_bytes());
    if (least <= file.length)
        return 0;
    length = length < most ? length : most;
    int64_t done = length < least ? -EFBIG : ensio_with_private_files(set_length, &length);
    if (done && file.is_reserved && length > least) {
        length = round_up(least, page_bytes());
        done = ensio_with_private_files(set_length, &length);
    }
    if (!done)
        file.length = length;
    return done;
}

/* Maps the next part of the file, after `skipped` bytes, and allocates blocks for its first pages. */
static void *map_next(uint64_t skipped, uint64_t bytes, uint64_t populated, int64_t *error)
{
    const uint64_t page = page_bytes(), all = skipped + bytes + page;
    char *grown = ensio_raw_grow(file.end, page, all);
    *error = grown ? 0 : -ENOMEM;
    if (*error)
        return NULL;
    char *part = grown + skipped;
    if (bytes >= ENSIO_WINDOW_LARGE_BYTES)
        madvise(part, bytes, MADV_HUGEPAGE); /* a hint: the window also works without it */
    *error = ensio_raw_populate(part, populated);
    file.end = *error ? grown : part + bytes;
    if (*error)
        ensio_raw_unmap(grown + page, all - page);
    else if (skipped)
        ensio_raw_unmap(grown, skipped);
    return *error ? NULL : part;
}

static void store_properties(void)
{
    static char text[32768];
    static char number[24], step[24], folder[ENSIO_PATH_ROOM]; /* static: the stack of a signal handler may be small */
    struct ensio_string all = ensio_string_in(text, sizeof text), start = ensio_string_in(number, sizeof number);
    struct ensio_string ticks = ensio_string_in(step, sizeof step);
    ensio_add_number(&start, ensio_clock_ns(CLOCK_REALTIME));
    ensio_add_number(&ticks, ensio_clock_step());
    folder[0] = '\0';
    if (ENSIO_RAW(SYS_getcwd, folder, sizeof folder) < 0)
        folder[0] = '\0';
    const char *const properties[][2] = {
        {"host", ensio_settings.host},       {"program", ensio_settings.program},
        {"command", ensio_settings.command}, {"cwd", folder},
        {"job", ensio_settings.job},         {"mode", ensio_mode_name()},
        {"recorder", ENSIO_VERSION},         {"start_unix_ns", number},
        {"clock_step_ticks", step},          {"exclude", ensio_settings.exclude},
        {"launch", ensio_settings.key},      {"summed", ensio_settings.point_to_point ? "" : "point-to-point"},
    };
    for (size_t i = 0; i < sizeof properties / sizeof *properties; i++) {
        ensio_add(&all, properties[i][0]);
        ensio_add(&all, "=");
        ensio_add(&all, properties[i][1]);
        ensio_add_bytes(&all, "", 1);
    }
    ensio_text_store(ENSIO_TEXT_PROPERTIES, 0, text, all.length);
}

static int64_t make(void *calls)
{
    uint32_t pid = ensio_raw_pid();
    struct ensio_string path = ensio_string_in(spool_path, sizeof spool_path);
    ensio_add(&path, ensio_spool_directory);
    ensio_add(&path, "/");
    ensio_add_name(&path, ensio_settings.host);
    ensio_add(&path, "-");
    ensio_add_number(&path, pid);
    ensio_add(&path, "-");
    ensio_add_number(&path, ensio_clock_ns(CLOCK_MONOTONIC));
    ensio_add(&path, ".spool");
    if (path.full)
        return -ENAMETOOLONG;
    int fd = ensio_private_open(spool_path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (fd < 0)
        return fd;
    keep_in_place(fd);
    const uint64_t room = room_in_quota(fd);
    int64_t error;
    struct ensio_spool *head = map_first(fd, &error);
    ensio_raw_close(fd);
    if (!error)
        error = ensio_run_directory_point_to(spool_path);
    if (error) {
        if (head)
            ensio_raw_unmap(head, ENSIO_SPOOL_BYTES + page_bytes());
        ENSIO_RAW(SYS_unlinkat, AT_FDCWD, spool_path, 0);
        return error;
    }
    *head = (struct ensio_spool){
        .version = ENSIO_SPOOL_VERSION,
        .event_bytes = sizeof(struct ensio_event),
        .allocated_bytes = ENSIO_SPOOL_BYTES,
        .clock = ensio_clock_kind,
        .pid = pid,
        .parent_pid = (uint32_t)syscall(SYS_getppid),
        .first = ensio_spool_begun,
        .last = ensio_spool_begun,
    };
    ensio_spool = head;
    ensio_losses = (struct ensio_losses *)(void *)((char *)head + ENSIO_SPOOL_LOSSES_BYTES);
    ensio_account = (struct ensio_account *)(void *)((char *)head + ENSIO_SPOOL_ACCOUNT_BYTES);
    ensio_flights = (struct ensio_flights *)(void *)((char *)head + ENSIO_SPOOL_FLIGHTS_BYTES);
    ensio_spool_number++;
    text_window = NULL;
    calls_due = calls;
    memset(made_bytes, 0, sizeof made_bytes);
    uint32_t reason;
    ensio_mounts_keep();
    ensio_budget_begin(room);
    ensio_budget_take(ENSIO_SPOOL_BYTES, 1, &reason);
    store_properties();
    ensio_process_facts_store();
    ensio_mounts_read();
    ensio_mounts_keep_no_more();
    ensio_spool_touch();
    ensio_spool_set_rank(ensio_settings.rank, ensio_settings.tasks);
    __atomic_store_n(&head->magic, ENSIO_SPOOL_MAGIC, __ATOMIC_RELEASE);
    return 0;
}

int ensio_spool_make(const char *calls)
{
    return (int)ensio_with_private_files(make, (void *)(uintptr_t)calls);
}

const char *ensio_spool_name(void)
{
    return ensio_base_name(spool_path);
}

int ensio_spool_remove(void)
{
    const long removed = ENSIO_RAW(SYS_unlinkat, AT_FDCWD, spool_path, 0);
    if (removed == 0) {
        ensio_run_directory_unpoint(spool_path);
        ensio_budget_end();
        ensio_spool_forget();
    }
    return (int)removed;
}

void ensio_spool_forget(void)
{
    ensio_spool = NULL;
    text_window = NULL;
    ensio_sites_forget();
}

int ensio_spool_open(void)
{
    return ensio_private_open(spool_path, O_RDONLY | O_NOFOLLOW, 0);
}

int ensio_spool_open_to_change(void)
{
    return ensio_private_open(spool_path, O_RDWR | O_NOFOLLOW, 0);
}

/* A program that changes its rights repeatedly pays for this only when half of the last extension is used. A process
 * that ends without the right to open the file leaves its length, which is therefore limited by the budget. */
void ensio_spool_prepare_for_less(void)
{
    ensio_budget_join();
    const uint64_t budget = ensio_settings.mode == ENSIO_TRACE ? ensio_budget_left() : 0,
                   used = ensio_spool->allocated_bytes;
    const uint64_t most = file.is_reserved ? SUMMARY_BYTES : LENGTH_WITHOUT_RIGHTS_BYTES;
    const uint64_t more = SUMMARY_BYTES + (budget < most ? budget : most);
    if (file.length < used + more / 2)
        lengthen(used + more);
}

/* After a refusal, a kind of window is not requested again for a while. A file system whose quota is exhausted may take
 * long to refuse, and the program must not spend its time on that. */
static struct {
    uint64_t bytes, until;
} refused[WINDOW_KINDS];

static void refuse_for_a_while(uint16_t kind, uint64_t bytes, uint64_t asked)
{
    const uint64_t now = ensio_ticks(), pause = REFUSED_TIMES * (now - asked);
    refused[kind].bytes = bytes;
    refused[kind].until = now + (pause < LONGEST_REFUSAL_TICKS ? pause : LONGEST_REFUSAL_TICKS);
}

static uint32_t reason_of(int64_t error)
{
    switch (-error) {
    case EFBIG:
        return ENSIO_DROPPED_FILE_SIZE;
    case ENOSPC:
    case EDQUOT:
        return ENSIO_DROPPED_FULL;
    case ENOMEM:
    case EAGAIN:
        return ENSIO_DROPPED_MEMORY;
    default:
        return ENSIO_DROPPED_UNREACHABLE;
    }
}

/* Without these windows a call would be missing in the summary, or its file would have no name. They are small, and
 * made regardless of the budget. */
static int is_exempt(uint16_t kind)
{
    if (kind == ENSIO_WINDOW_TEXT)
        return text_is_essential || made_bytes[kind] < EXEMPT_TEXT_BYTES;
    if (kind == ENSIO_WINDOW_MARKS)
        return made_bytes[kind] < EXEMPT_MARKS_BYTES;
    if (kind == ENSIO_WINDOW_SURROUNDINGS)
        return made_bytes[kind] < EXEMPT_SURROUNDINGS_BYTES;
    if (kind == ENSIO_WINDOW_SCRATCH)
        return made_bytes[kind] < EXEMPT_SCRATCH_BYTES;
    return kind != ENSIO_WINDOW_EVENTS && kind != ENSIO_WINDOW_CODED && kind != ENSIO_WINDOW_FLIGHTS;
}

struct ensio_window *ensio_window_begin(uint16_t kind, uint64_t bytes, uint64_t populated)
{
    const uint64_t asked = ensio_ticks(), wanted = bytes, most = ensio_longest_file();
    if (asked < refused[kind].until && wanted >= refused[kind].bytes && !text_is_essential)
        return NULL;
    if (kind != ENSIO_WINDOW_TEXT && calls_due &&
        ensio_text_store_essential(ENSIO_TEXT_CALLS, 0, calls_due, (uint32_t)strlen(calls_due)) == 0)
        calls_due = NULL;
    const int exempt = is_exempt(kind);
    const int is_kept = kind == ENSIO_WINDOW_EVENTS || kind == ENSIO_WINDOW_CODED || kind == ENSIO_WINDOW_MARKS;
    uint32_t *reason = is_kept ? &drop_reason : &(uint32_t){0};
    bytes = ensio_budget_take(round_up(bytes, page_bytes()), exempt, reason);
    if (!bytes) {
        refuse_for_a_while(kind, wanted, asked);
        return NULL;
    }
    const uint64_t behind = ensio_spool->allocated_bytes;
    /* Readers skip the hole, which would take reserved space. */
    const int aligned = bytes >= ENSIO_WINDOW_LARGE_BYTES && !file.is_reserved;
    const uint64_t offset = aligned ? round_up(behind, ENSIO_WINDOW_LARGE_BYTES) : behind;
    const uint64_t length = file.is_reserved ? file.length : most, spared = exempt ? 0 : length / 4;
    int64_t error = -ENOSPC;
    if (!calls_due || kind == ENSIO_WINDOW_TEXT)
        error = lengthen(offset + bytes + page_bytes() + (spared < SUMMARY_BYTES ? spared : SUMMARY_BYTES));
    struct ensio_window *window = NULL;
    if (!error)
        window = map_next(offset - behind, bytes, populated < bytes ? populated : bytes, &error);
    if (!window) {
        *reason = reason_of(error);
        ensio_budget_give_back(bytes);
        refuse_for_a_while(kind, wanted, asked);
        return NULL;
    }
    made_bytes[kind] += bytes;
    window->kind = kind;
    window->bytes = bytes;
    __atomic_store_n(&window->magic, ENSIO_WINDOW_MAGIC, __ATOMIC_RELEASE);
    __atomic_store_n(&ensio_spool->allocated_bytes, offset + bytes, __ATOMIC_RELEASE);
    return window;
}

struct ensio_window *ensio_window_make(uint16_t kind, uint64_t bytes)
{
    return ensio_window_begin(kind, bytes, bytes);
}

int ensio_window_populate(struct ensio_window *window, uint64_t from, uint64_t to)
{
    const uint64_t first = round_up(from, page_bytes()), end = round_up(to, page_bytes());
    const int64_t error = first < end ? ensio_raw_populate((char *)window + first, end - first) : 0;
    if (error)
        drop_reason = reason_of(error);
    return (int)error;
}

static uint64_t bytes_of_entry(uint32_t length)
{
    return (sizeof(struct ensio_text) + length + 7) / 8 * 8;
}

/* Allocates what a text of this length needs in the first window. Some room is allocated ahead: what a process says of
 * its end must not depend on where the last page ends when the disk is full. */
static void populate_first(uint32_t length)
{
    const uint64_t end = ENSIO_SPOOL_TEXT_BYTES + ensio_spool->text_bytes + bytes_of_entry(length);
    const uint64_t ahead = round_up(end + TEXT_OF_ENDS_BYTES, MORE_POPULATED_BYTES);
    const uint64_t wanted = ahead < ENSIO_SPOOL_BYTES ? ahead : ENSIO_SPOOL_BYTES;
    if (wanted > file.first_populated &&
        ensio_raw_populate((char *)ensio_spool + file.first_populated, wanted - file.first_populated) == 0)
        __atomic_store_n(&file.first_populated, wanted, __ATOMIC_RELEASE);
}

/* Appends an entry to those of a window, if there is room. Threads and signal handlers do so at the same time: a place
 * is taken by an exchange that says how long it is, and readers skip an entry that was never completed. */
static int store_in(char *first, uint64_t room, uint32_t *used, const struct ensio_text *head, const char *text)
{
    const uint64_t needed = bytes_of_entry(head->length), mine = head->length | 1ULL << 32;
    uint32_t at = __atomic_load_n(used, __ATOMIC_ACQUIRE);
    struct ensio_text *entry;
    for (uint64_t others;; at += (uint32_t)bytes_of_entry((uint32_t)others)) {
        if (at + needed > room)
            return -1;
        entry = (struct ensio_text *)(void *)(first + at);
        others = 0;
        if (__atomic_compare_exchange_n((uint64_t *)(void *)&entry->length, &others, mine, 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
            break;
    }
    entry->id = head->id;
    memcpy(entry + 1, text, head->length);
    __atomic_store_n(&entry->kind, head->kind, __ATOMIC_RELEASE);
    const uint64_t summed = sizeof *entry - offsetof(struct ensio_text, id) + head->length;
    __atomic_store_n(&entry->sum, ensio_checksum(&entry->id, summed) ^ head->kind, __ATOMIC_RELEASE);
    for (uint32_t before = at; before < at + needed;)
        if (__atomic_compare_exchange_n(used, &before, at + (uint32_t)needed, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
            break;
    return 0;
}

/* Stores a text where the last one was stored, if there is room. */
static int store_text(const struct ensio_text *head, const char *text)
{
    struct ensio_window *const window = __atomic_load_n(&text_window, __ATOMIC_ACQUIRE);
    struct ensio_spool *const spool = __atomic_load_n(&ensio_spool, __ATOMIC_ACQUIRE);
    const uint64_t populated = __atomic_load_n(&file.first_populated, __ATOMIC_ACQUIRE);
    return window ? store_in((char *)window + ENSIO_WINDOW_HEADER_BYTES, window->bytes - ENSIO_WINDOW_HEADER_BYTES,
                             &window->text_bytes, head, text)
                  : store_in((char *)spool + ENSIO_SPOOL_TEXT_BYTES, populated - ENSIO_SPOOL_TEXT_BYTES,
                             &spool->text_bytes, head, text);
}

/* A full window stays mapped, because another thread may still store to it. */
int ensio_text_store(uint16_t kind, uint32_t id, const char *text, uint32_t length)
{
    const struct ensio_text head = {.kind = kind, .id = id, .length = length};
    if (store_text(&head, text) == 0)
        return 0;
    struct ensio_held held = ensio_lock();
    if (!text_window)
        populate_first(length);
    int stored = store_text(&head, text);
    struct ensio_window *const next =
        stored ? ensio_window_make(ENSIO_WINDOW_TEXT, (text_is_essential ? 1 : TEXT_WINDOW_BYTES) + length) : NULL;
    if (next) {
        __atomic_store_n(&text_window, next, __ATOMIC_RELEASE);
        stored = store_text(&head, text);
    }
    ensio_unlock(held);
    return stored;
}

int ensio_text_store_essential(uint16_t kind, uint32_t id, const char *text, uint32_t length)
{
    text_is_essential = 1;
    const int stored = ensio_text_store(kind, id, text, length);
    text_is_essential = 0;
    return stored;
}

void ensio_spool_drop(void)
{
    __atomic_fetch_add(&ensio_spool->dropped_events, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&ensio_losses->dropped_for[drop_reason], 1, __ATOMIC_RELAXED);
}

void ensio_spool_lose(void)
{
    ensio_spool_drop();
    __atomic_fetch_add(&ensio_spool->lost_calls, 1, __ATOMIC_RELAXED);
}

void ensio_spool_touch(void)
{
    uint32_t into_spare = !ensio_spool->last_is_spare;
    *(into_spare ? &ensio_spool->spare : &ensio_spool->last) = ensio_clock_read();
    __atomic_store_n(&ensio_spool->last_is_spare, into_spare, __ATOMIC_RELEASE);
}

void ensio_spool_set_state(uint32_t state)
{
    ensio_spool_touch();
    __atomic_store_n(&ensio_spool->state, state, __ATOMIC_RELEASE);
}

/* Truncates the file to its contents. A window that a thread still needs extends it again. */
void ensio_spool_end(uint32_t state)
{
    uint64_t length = ensio_spool->allocated_bytes;
    ensio_spool_set_state(state);
    if (file.length != length && ensio_with_private_files(set_length, &length) == 0)
        file.length = length;
    ensio_budget_end();
}
