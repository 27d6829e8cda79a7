#include "spool.h"

#include "budget.h"
#include "clock.h"
#include "raw.h"
#include "run_directory.h"
#include "settings.h"
#include "surroundings.h"
#include "text.h"

#include <linux/fs.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>

struct ensio_spool *ensio_spool;
uint32_t ensio_spool_number;

static char spool_path[ENSIO_PATH_ROOM];
static struct ensio_window *text_window; /* where text entries go when the first window is full */

#define LARGE_PAGE_BYTES (2 << 20)
#define TEXT_WINDOW_BYTES 65536

#define REFUSED_TIMES 64                    /* as long as the refusal took */
#define LONGEST_REFUSAL_TICKS (1ULL << 31) /* about a second */

static uint64_t round_up(uint64_t bytes, uint64_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

/* Space that is not reserved would be missed only when a page is touched, as SIGBUS. Where the file system cannot
 * reserve, writing zeros does it. */
long ensio_reserve(int fd, uint64_t offset, uint64_t bytes)
{
    struct rlimit limit;
    if (ENSIO_RAW(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &limit) == 0 && offset + bytes > limit.rlim_cur)
        return -EFBIG; /* going over it would raise SIGXFSZ in the program */
    long result = ENSIO_RAW(SYS_fallocate, fd, 0, offset, bytes);
    static const char zeros[16384];
    if (result != -EOPNOTSUPP && result != -ENOSYS)
        return result;
    for (uint64_t done = 0; done < bytes; done += (uint64_t)result) {
        uint64_t left = bytes - done;
        result = ENSIO_RAW(SYS_pwrite64, fd, zeros, left < sizeof zeros ? left : sizeof zeros, offset + done);
        if (result <= 0)
            return result ? result : -ENOSPC;
    }
    return 0;
}

/* Opens a file of the recorder's at a descriptor above the standard ones. A program whose standard output is closed must go on to find it
 * closed: while the file is open, the places below are held by a descriptor that cannot be written to. */
int ensio_open_aside(const char *path, int flags)
{
    int below[3], count = 0, fd;
    while (count < 3 && (below[count] = ensio_raw_open("/", O_PATH, 0)) >= 0 && below[count] < 3)
        count++;
    if (count < 3 && below[count] >= 3)
        ensio_raw_close(below[count]);
    fd = ensio_raw_open(path, flags, 0600);
    while (count > 0)
        ensio_raw_close(below[--count]);
    return fd;
}

/* File systems that write every change of a page to a new place (btrfs) need space for it, which at a quota's end there is not:
 * SIGBUS. They can be told to leave a file's pages where they are; others refuse, and do so anyway. */
static void keep_in_place(int fd)
{
    unsigned flags = 0;
    if (ENSIO_RAW(SYS_ioctl, fd, FS_IOC_GETFLAGS, &flags) == 0 && !(flags & FS_NOCOW_FL)) {
        flags |= FS_NOCOW_FL;
        ENSIO_RAW(SYS_ioctl, fd, FS_IOC_SETFLAGS, &flags);
    }
}

/* The descriptor is closed again at once: the program may close or replace any descriptor that it finds, and must not find
 * one that it did not open. */
static void *map_part(int fd, uint64_t offset, uint64_t bytes)
{
    long reserved = ensio_reserve(fd, offset, bytes);
    if (reserved < 0)
        return NULL;
    void *mapped = ensio_raw_map(bytes, MAP_SHARED, fd, offset);
    if (mapped && bytes >= LARGE_PAGE_BYTES)
        madvise(mapped, bytes, MADV_HUGEPAGE); /* a wish: refused, the window works as well */
    return mapped;
}

static void store_properties(void)
{
    static char text[32768];
    static char number[24], command[16384], folder[ENSIO_PATH_ROOM]; /* a signal handler's stack may be small */
    struct ensio_string all = ensio_string_in(text, sizeof text), start = ensio_string_in(number, sizeof number);
    ensio_add_number(&start, ensio_clock_ns(CLOCK_REALTIME));
    int fd = ensio_raw_open("/proc/self/cmdline", O_RDONLY, 0);
    long length = fd < 0 ? 0 : ENSIO_RAW(SYS_read, fd, command, sizeof command - 1);
    if (fd >= 0)
        ensio_raw_close(fd);
    command[length > 0 ? length - 1 : 0] = '\0';
    for (long i = 0; i + 1 < length; i++)
        if (command[i] == '\0')
            command[i] = '\x1f';
    folder[0] = '\0';
    if (ENSIO_RAW(SYS_getcwd, folder, sizeof folder) < 0)
        folder[0] = '\0';
    const char *const properties[][2] = {
        {"host", ensio_settings.host},   {"program", ensio_settings.program}, {"command", command},
        {"cwd", folder},                 {"job", ensio_settings.job},         {"mode", ensio_mode_name()},
        {"recorder", ENSIO_VERSION},     {"start_unix_ns", number},           {"exclude", ensio_settings.exclude},
        {"launch", ensio_settings.key},
    };
    for (size_t i = 0; i < sizeof properties / sizeof *properties; i++) {
        ensio_add(&all, properties[i][0]);
        ensio_add(&all, "=");
        ensio_add(&all, properties[i][1]);
        ensio_add_bytes(&all, "", 1);
    }
    ensio_text_store(ENSIO_TEXT_PROPERTIES, 0, text, all.length);
}

int ensio_spool_make(void)
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
    int fd = ensio_open_aside(spool_path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW);
    if (fd < 0)
        return fd;
    keep_in_place(fd);
    struct ensio_clock_reading now = ensio_clock_read();
    struct ensio_spool *head = map_part(fd, 0, ENSIO_SPOOL_BYTES);
    ensio_raw_close(fd);
    int pointed = head ? ensio_run_directory_point_to(spool_path) : -ENOSPC;
    if (pointed) {
        if (head)
            ensio_raw_unmap(head, ENSIO_SPOOL_BYTES);
        ENSIO_RAW(SYS_unlinkat, AT_FDCWD, spool_path, 0);
        return pointed;
    }
    ensio_budget_take(ENSIO_SPOOL_BYTES, 1);
    *head = (struct ensio_spool){
        .version = ENSIO_SPOOL_VERSION,
        .event_bytes = sizeof(struct ensio_event),
        .allocated_bytes = ENSIO_SPOOL_BYTES,
        .clock = ensio_clock_kind,
        .pid = pid,
        .parent_pid = (uint32_t)syscall(SYS_getppid),
        .rank = ensio_settings.rank,
        .tasks = ensio_settings.tasks,
        .first = now,
        .last = now,
    };
    ensio_spool = head;
    ensio_spool_number++;
    text_window = NULL;
    store_properties();
    ensio_surroundings_store();
    ensio_spool_touch();
    __atomic_store_n(&head->magic, ENSIO_SPOOL_MAGIC, __ATOMIC_RELEASE);
    return 0;
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
        ensio_spool_forget();
    }
    return (int)removed;
}

void ensio_spool_forget(void)
{
    ensio_spool = NULL;
    text_window = NULL;
    ensio_budget_forget();
}

int ensio_spool_open(int flags)
{
    return ensio_open_aside(spool_path, flags | O_NOFOLLOW);
}

/* Where there was no space for a kind of window, it is not asked for again for a while: a file system whose quota is spent may
 * take long to refuse, and the program must not spend its time on that. Texts are always tried: events point to them. */
static struct {
    uint64_t bytes, until;
} refused[ENSIO_WINDOW_MARKS + 1];

static void refuse_for_a_while(uint16_t kind, uint64_t bytes, uint64_t asked)
{
    const uint64_t now = ensio_ticks(), pause = REFUSED_TIMES * (now - asked);
    refused[kind].bytes = bytes;
    if (kind != ENSIO_WINDOW_TEXT)
        refused[kind].until = now + (pause < LONGEST_REFUSAL_TICKS ? pause : LONGEST_REFUSAL_TICKS);
}

struct ensio_window *ensio_window_make(uint16_t kind, uint64_t bytes)
{
    const uint64_t asked = ensio_ticks(), wanted = bytes;
    if (asked < refused[kind].until && wanted >= refused[kind].bytes)
        return NULL;
    bytes = ensio_budget_take(round_up(bytes, getauxval(AT_PAGESZ)), kind != ENSIO_WINDOW_EVENTS);
    int fd = bytes ? ensio_open_aside(spool_path, O_RDWR | O_NOFOLLOW) : -1;
    if (fd < 0) {
        ensio_budget_give_back(bytes);
        return NULL;
    }
    uint64_t offset = ensio_spool->allocated_bytes;
    if (bytes >= LARGE_PAGE_BYTES)
        offset = round_up(offset, LARGE_PAGE_BYTES); /* readers pass over the hole */
    struct ensio_window *window = map_part(fd, offset, bytes);
    ensio_raw_close(fd);
    if (!window) {
        ensio_budget_give_back(bytes);
        refuse_for_a_while(kind, wanted, asked);
        return NULL;
    }
    window->kind = kind;
    window->bytes = bytes;
    __atomic_store_n(&window->magic, ENSIO_WINDOW_MAGIC, __ATOMIC_RELEASE);
    __atomic_store_n(&ensio_spool->allocated_bytes, offset + bytes, __ATOMIC_RELEASE);
    return window;
}

/* Puts an entry behind those that a window has, if there is room. */
static int store_in(char *first, uint64_t room, uint32_t *used, const struct ensio_text *head, const char *text)
{
    uint64_t needed = (sizeof *head + head->length + 7) / 8 * 8;
    if (*used + needed > room)
        return -1;
    struct ensio_text *entry = (struct ensio_text *)(void *)(first + *used);
    entry->id = head->id;
    entry->length = head->length;
    memcpy(entry + 1, text, head->length);
    __atomic_store_n(&entry->kind, head->kind, __ATOMIC_RELEASE);
    __atomic_store_n(used, *used + (uint32_t)needed, __ATOMIC_RELEASE);
    return 0;
}

int ensio_text_store(uint16_t kind, uint32_t id, const char *text, uint32_t length)
{
    struct ensio_text head = {.kind = kind, .id = id, .length = length};
    if (!text_window && store_in((char *)ensio_spool + ENSIO_SPOOL_TEXT_BYTES,
                                 ENSIO_SPOOL_BYTES - ENSIO_SPOOL_TEXT_BYTES, &ensio_spool->text_bytes, &head,
                                 text) == 0)
        return 0;
    for (int attempt = 0; attempt < 2; attempt++) {
        if (text_window && store_in((char *)text_window + ENSIO_WINDOW_HEADER_BYTES,
                                    text_window->bytes - ENSIO_WINDOW_HEADER_BYTES, &text_window->text_bytes, &head,
                                    text) == 0)
            return 0;
        struct ensio_window *next =
            ensio_window_make(ENSIO_WINDOW_TEXT, TEXT_WINDOW_BYTES + length);
        if (!next)
            return -1;
        if (text_window)
            ensio_raw_unmap(text_window, text_window->bytes);
        text_window = next;
    }
    return -1;
}

void ensio_spool_lose(void)
{
    __atomic_fetch_add(&ensio_spool->dropped_events, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&ensio_spool->lost_calls, 1, __ATOMIC_RELAXED);
}

void ensio_spool_touch(void)
{
    uint32_t into_spare = !ensio_spool->last_is_spare;
    *(into_spare ? &ensio_spool->spare : &ensio_spool->last) = ensio_clock_read();
    __atomic_store_n(&ensio_spool->last_is_spare, into_spare, __ATOMIC_RELEASE);
}

void ensio_spool_end(void)
{
    ensio_spool_touch();
    __atomic_store_n(&ensio_spool->state, ENSIO_STATE_ENDED, __ATOMIC_RELEASE);
}
