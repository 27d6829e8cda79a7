#include "budget.h"

#include "raw.h"
#include "run_directory.h"
#include "settings.h"
#include "spool.h"
#include "text.h"

#include <ensio/event.h>
#include <stdlib.h>
#include <string.h>

#define COUNTER_BYTES 4096

static uint64_t most = UINT64_MAX, most_on_node = UINT64_MAX, taken;

/* What all processes of the run on this node have taken, in a file of the run directory that they have mapped: one addition, no
 * lock that a killed process could leave behind. */
static uint64_t *taken_on_node;

/* A size such as 64MiB, up to `end`; 0: none. */
static uint64_t size_of(const char *text, const char *end)
{
    static const char *const units[] = {"", "B", "KiB", "MiB", "GiB", "TiB", "kB", "MB", "GB", "TB"};
    static const uint64_t bytes[] = {1, 1, 1ULL << 10, 1ULL << 20, 1ULL << 30, 1ULL << 40, 1000, 1000000, 1000000000, 1000000000000};
    uint64_t number = 0;
    if (*text < '0' || *text > '9')
        return 0;
    for (; text < end && *text >= '0' && *text <= '9'; text++)
        if (__builtin_mul_overflow(number, 10, &number) || __builtin_add_overflow(number, (uint64_t)(*text - '0'), &number))
            return 0;
    size_t length = (size_t)(end - text);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strlen(units[i]) == length && memcmp(text, units[i], length) == 0)
            return __builtin_mul_overflow(number, bytes[i], &number) ? 0 : number;
    return 0;
}

void ensio_budget_read(const char *text)
{
    const char *end = text + strlen(text), *comma = strchr(text, ',');
    uint64_t process = size_of(text, comma ? comma : end), node = comma ? size_of(comma + 1, end) : UINT64_MAX;
    if (process && node) {
        most = process;
        most_on_node = node;
    } else {
        ensio_say("ENSIO_MAX_BYTES is \"", text, "\", which is no size or two, such as 64MiB or 64MiB,1GiB; it is ignored.\n");
    }
}

static void map_counter(void)
{
    char name[ENSIO_PATH_ROOM];
    struct ensio_string path = ensio_string_in(name, sizeof name);
    ensio_add(&path, ensio_run_directory);
    ensio_add(&path, "/.");
    ensio_add_name(&path, ensio_settings.host);
    ensio_add(&path, ".taken");
    int fd = path.full ? -1 : ensio_open_aside(name, O_RDWR | O_CREAT | O_NOFOLLOW);
    if (fd < 0)
        return;
    /* Where space can be reserved by writing zeros only, these must not go over a count that is there. */
    if (ensio_reserve(fd, sizeof *taken_on_node, COUNTER_BYTES - sizeof *taken_on_node) == 0)
        taken_on_node = ensio_raw_map(COUNTER_BYTES, MAP_SHARED, fd, 0);
    ensio_raw_close(fd);
}

static uint64_t left(uint64_t used, uint64_t limit)
{
    return used < limit ? limit - used : 0;
}

uint64_t ensio_budget_take(uint64_t bytes, int must)
{
    if (most_on_node != UINT64_MAX && !taken_on_node)
        map_counter();
    uint64_t room = left(taken, most), on_node = UINT64_MAX;
    if (most_on_node != UINT64_MAX)
        on_node = taken_on_node ? left(__atomic_load_n(taken_on_node, __ATOMIC_RELAXED), most_on_node) : 0;
    room = room < on_node ? room : on_node;
    if (bytes > room && !must)
        bytes = room / ENSIO_WINDOW_UNIT_BYTES * ENSIO_WINDOW_UNIT_BYTES;
    if (!bytes)
        return 0;
    taken += bytes;
    if (taken_on_node && __atomic_add_fetch(taken_on_node, bytes, __ATOMIC_RELAXED) > most_on_node && !must) {
        ensio_budget_give_back(bytes); /* others were quicker */
        return 0;
    }
    return bytes;
}

void ensio_budget_give_back(uint64_t bytes)
{
    taken -= bytes;
    if (taken_on_node)
        __atomic_fetch_sub(taken_on_node, bytes, __ATOMIC_RELAXED);
}

void ensio_budget_forget(void)
{
    taken = 0;
}
