#include "space_budget.h"

#include "free_space.h"
#include "run_directory.h"

#include <core/bounded_string.h>
#include <core/private_files.h>
#include <core/rawsys.h>
#include <core/settings.h>
#include <core/site_settings.h>

#include <ensio/event.h>
#include <stdlib.h>
#include <string.h>

#define COUNTER_BYTES 4096
/* Without ENSIO_MAX_BYTES, a run takes at most a tenth of the space that is free on a node when it begins, ... */
#define SHARE_OF_FREE 10
#define FLOOR_SHARE 20           /* and leaves a twentieth of the file system free, */
#define FLOOR_BYTES (1ULL << 30) /* or this many bytes, if that is less */

static uint64_t most = UINT64_MAX, most_on_node = UINT64_MAX, taken;
static int is_set; /* by ENSIO_MAX_BYTES */

/* What all processes of the run on this node have taken, in a file next to their spools that each of them maps. An
 * addition needs no lock that a killed process could leave behind. */
struct counter {
    uint64_t taken;
    uint64_t most;  /* a share of what was free when the first process began */
    uint64_t users; /* processes that have begun and not yet ended */
};
static struct counter of_this_process, *on_node;
static int is_user, may_join;

/* Without ENSIO_MAX_BYTES, a process counts for itself until it has taken this much. Most processes never do, and need
 * no file that all of a node share. */
#define ALONE_BYTES (512 << 10)

/* A size such as 64MiB, up to `end`; 0: none. */
static uint64_t size_of(const char *text, const char *end)
{
    static const char *const units[] = {"", "B", "KiB", "MiB", "GiB", "TiB", "kB", "MB", "GB", "TB"};
    static const uint64_t bytes[] = {1,          1,    1ULL << 10, 1ULL << 20, 1ULL << 30,
                                     1ULL << 40, 1000, 1000000,    1000000000, 1000000000000};
    uint64_t number = 0;
    if (*text < '0' || *text > '9')
        return 0;
    for (; text < end && *text >= '0' && *text <= '9'; text++)
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(*text - '0'), &number))
            return 0;
    size_t length = (size_t)(end - text);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strlen(units[i]) == length && memcmp(text, units[i], length) == 0)
            return __builtin_mul_overflow(number, bytes[i], &number) ? 0 : number;
    return 0;
}

void ensio_budget_read(void)
{
    const char *text = ensio_setting("ENSIO_MAX_BYTES");
    if (!text || !*text)
        return;
    const char *end = text + strlen(text), *comma = strchr(text, ',');
    uint64_t process = size_of(text, comma ? comma : end), node = comma ? size_of(comma + 1, end) : UINT64_MAX;
    if (process && node) {
        most = process;
        most_on_node = node;
        is_set = 1;
    } else {
        ensio_say(
            "ENSIO_MAX_BYTES is \"", text,
            "\", which is not a size or two comma-separated sizes, such as 64MiB or 64MiB,1GiB; it is ignored.\n");
    }
}

static struct ensio_string counter_path(char *buffer, uint32_t room)
{
    struct ensio_string path = ensio_string_in(buffer, room);
    ensio_add(&path, ensio_spool_directory);
    ensio_add(&path, "/.");
    ensio_add_name(&path, ensio_settings.host);
    ensio_add(&path, ".taken");
    return path;
}

/* Another user who can write to the folder may have created a file of this name, and could truncate it while it is
 * mapped. */
static int is_ours_alone(int fd)
{
    struct stat found;
    return ENSIO_RAW(SYS_newfstatat, fd, "", &found, AT_EMPTY_PATH) == 0 && S_ISREG(found.st_mode) &&
           found.st_nlink == 1 && found.st_uid == (uid_t)syscall(SYS_geteuid) && !(found.st_mode & 077);
}

static struct counter *mapped_counter; /* a forked child inherits it */

static int64_t map_counter(void *unused)
{
    static char name[ENSIO_PATH_ROOM];
    const struct ensio_string path = counter_path(name, sizeof name);
    int fd = path.full ? -1 : ensio_private_open(name, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
    struct counter *mapped = NULL;
    if (fd < 0)
        return fd;
    if (is_ours_alone(fd) && ENSIO_RAW(SYS_ftruncate, fd, COUNTER_BYTES) == 0)
        mapped = ensio_raw_map(COUNTER_BYTES, MAP_SHARED, fd, 0);
    ensio_raw_close(fd);
    if (mapped && ensio_raw_populate(mapped, COUNTER_BYTES) != 0) {
        ensio_raw_unmap(mapped, COUNTER_BYTES);
        mapped = NULL;
    }
    mapped_counter = mapped;
    return 0;
}

void ensio_budget_join(void)
{
    uint64_t none = 0;
    if (!may_join)
        return;
    may_join = 0;
    if (!mapped_counter)
        ensio_with_private_files(map_counter, NULL);
    if (!mapped_counter)
        return;
    on_node = mapped_counter;
    __atomic_add_fetch(&on_node->taken, taken, __ATOMIC_RELAXED);
    __atomic_compare_exchange_n(&on_node->most, &none, of_this_process.most, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    __atomic_add_fetch(&on_node->users, 1, __ATOMIC_RELAXED);
    is_user = 1;
    if (!is_set)
        most_on_node = on_node->most;
}

void ensio_budget_begin(uint64_t room)
{
    struct ensio_free_space space;
    taken = 0;
    on_node = &of_this_process;
    ensio_free_space_begin();
    if (ensio_free_space_query(&space) == 0 && space.free < room)
        room = space.free;
    of_this_process = (struct counter){.most = room == UINT64_MAX ? room : room / SHARE_OF_FREE + 1};
    is_user = 0;
    may_join = 1;
    if (is_set)
        ensio_budget_join();
    else
        most_on_node = of_this_process.most;
}

void ensio_budget_end(void)
{
    static char name[ENSIO_PATH_ROOM];
    if (!is_user)
        return;
    is_user = 0;
    if (__atomic_sub_fetch(&on_node->users, 1, __ATOMIC_RELAXED) == 0) {
        counter_path(name, sizeof name);
        ENSIO_RAW(SYS_unlinkat, AT_FDCWD, name, 0);
    }
}

static uint64_t left(uint64_t used, uint64_t limit)
{
    return used < limit ? limit - used : 0;
}

uint64_t ensio_budget_left(void)
{
    const uint64_t own = left(taken, most),
                   node = left(__atomic_load_n(&on_node->taken, __ATOMIC_RELAXED), most_on_node);
    return own < node ? own : node;
}

uint64_t ensio_budget_above_floor(void)
{
    struct ensio_free_space space;
    if (ensio_free_space_query(&space) != 0)
        return UINT64_MAX;
    const uint64_t share = space.total / FLOOR_SHARE;
    return left(share < FLOOR_BYTES ? share : FLOOR_BYTES, space.free);
}

uint64_t ensio_budget_take(uint64_t bytes, int must, uint32_t *reason)
{
    if (taken + bytes > ALONE_BYTES)
        ensio_budget_join();
    if (!must) {
        const uint64_t allowed = ensio_budget_left(), on_disk = ensio_budget_above_floor();
        const uint64_t room = allowed < on_disk ? allowed : on_disk;
        *reason = allowed < on_disk ? ENSIO_DROPPED_BUDGET : ENSIO_DROPPED_FLOOR;
        if (bytes > room)
            bytes = room / ENSIO_WINDOW_UNIT_BYTES * ENSIO_WINDOW_UNIT_BYTES;
    }
    if (!bytes)
        return 0;
    taken += bytes;
    if (__atomic_add_fetch(&on_node->taken, bytes, __ATOMIC_RELAXED) > most_on_node && !must) {
        ensio_budget_give_back(bytes); /* other processes were faster */
        *reason = ENSIO_DROPPED_BUDGET;
        return 0;
    }
    return bytes;
}

void ensio_budget_give_back(uint64_t bytes)
{
    taken -= bytes;
    __atomic_fetch_sub(&on_node->taken, bytes, __ATOMIC_RELAXED);
}
