/* The file of a process: contiguous windows, growth, limits of its size, texts, and its end. */
#include "recorder_world.h"

#include <calls/calls.h>
#include <core/lock.h>
#include <spool/run_directory.h>
#include <time/clock.h>

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB (1ULL << 20)

static void begin(void)
{
    world_begin_with_spool(ENSIO_TRACE);
    ensio_lock();
}

static uint64_t length_of_file(void)
{
    char path[400];
    struct stat found;
    snprintf(path, sizeof path, "%s/%s", world_folder(), ensio_spool_name());
    CHECK(stat(path, &found) == 0);
    return (uint64_t)found.st_size;
}

static struct {
    const struct ensio_window *made[64];
    uint64_t positions[64];
    uint32_t count;
} made;

static void compare(const struct ensio_window *window, uint64_t position, void *state)
{
    uint32_t *at = state;
    CHECK(*at < made.count && window->bytes == made.made[*at]->bytes && window->kind == made.made[*at]->kind);
    /* The mapping that the recorder has is this part of the file. */
    const uint64_t mark = 0x1234567800000000U + *at;
    ((struct ensio_window *)(uintptr_t)made.made[*at])->rate = mark;
    CHECK(window->rate == mark);
    made.positions[*at] = position;
    ++*at;
}

/* Windows of any size follow each other, behind the table of calls; those that large pages may back begin at a multiple
 * of 2 MiB. */
static void windows(void)
{
    const uint64_t sizes[] = {1,       4096, 4097,        65536,   MIB,      2 * MIB - 4096,
                              2 * MIB, 4096, 2 * MIB + 1, 8 * MIB, 20 * MIB, 4096};
    uint64_t bytes, end = ENSIO_SPOOL_BYTES;
    uint32_t seen = 0;
    begin();
    const uint32_t texts = ensio_spool->text_bytes;
    CHECK(ensio_spool->allocated_bytes == end);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct ensio_window *window = ensio_window_make(ENSIO_WINDOW_EVENTS, sizes[i]);
        CHECK(window && window->bytes == (sizes[i] + 4095) / 4096 * 4096 && window->summarised == 0);
        CHECK(((uint8_t *)window)[window->bytes - 1] == 0);
        made.made[made.count++] = window;
        if (window->bytes >= 2 * MIB)
            end = (end + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);
        end += window->bytes;
        CHECK(ensio_spool->allocated_bytes == end && length_of_file() >= end);
    }
    CHECK(ensio_spool->text_bytes - texts - strlen(ensio_calls) <= sizeof(struct ensio_text) + 7); /* once */
    const uint8_t *file = world_spool_file(&bytes);
    CHECK(world_each_window(file, bytes, compare, &seen) == made.count && seen == made.count);
    CHECK(made.positions[0] == ENSIO_SPOOL_BYTES && made.positions[6] % (2 * MIB) == 0);
}

/* A part of a window may be populated later; all of it reads as zeros. */
static void parts(void)
{
    begin();
    struct ensio_window *window = ensio_window_begin(ENSIO_WINDOW_EVENTS, 65536, 5000);
    CHECK(window && window->bytes == 65536);
    unsigned char in_core[16];
    CHECK(ensio_window_populate(window, 5000, 8192) == 0);  /* already there */
    CHECK(ensio_window_populate(window, 8192, 20000) == 0); /* to the end of the fifth page */
    CHECK(ensio_window_populate(window, 20000, 65536) == 0);
    CHECK(mincore(window, 65536, in_core) == 0);
    for (int page = 0; page < 16; page++)
        CHECK(in_core[page] & 1);
    memset((char *)window + ENSIO_WINDOW_HEADER_BYTES, 0xab, 65536 - ENSIO_WINDOW_HEADER_BYTES);
}

static void limit_file(uint64_t bytes)
{
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
}

/* At the limit of the file's size, a quarter of it (at most 4 MiB) is spared for windows of the summary. */
static void limited_size(void)
{
    uint64_t events = 0, cells = 0;
    limit_file(2 * MIB);
    begin();
    while (ensio_window_make(ENSIO_WINDOW_EVENTS, 65536))
        events++;
    CHECK(events > 0 && ensio_spool->allocated_bytes <= 2 * MIB - MIB / 2);
    CHECK(ensio_spool->allocated_bytes + 2 * 65536 > 2 * MIB - MIB / 2);
    ensio_spool_drop();
    CHECK(ensio_losses->dropped_for[ENSIO_DROPPED_FILE_SIZE] == 1 && ensio_spool->dropped_events == 1);
    while (ensio_window_make(ENSIO_WINDOW_CELLS, 65536))
        cells++;
    CHECK(cells >= 7 && ensio_spool->allocated_bytes <= 2 * MIB && length_of_file() <= 2 * MIB);
}

/* A file that could not even hold the first window is not made. */
static void no_size(void)
{
    world_begin(ENSIO_TRACE);
    ensio_lock();
    limit_file(ENSIO_SPOOL_BYTES);
    CHECK(ensio_spool_make(ensio_calls) == -EFBIG && !ensio_spool);
    limit_file(ENSIO_SPOOL_BYTES + 4096);
    CHECK(ensio_spool_make(ensio_calls) == 0 && ensio_spool);
    CHECK(!ensio_window_make(ENSIO_WINDOW_EVENTS, 4096));
    ensio_spool_end(ENSIO_STATE_ENDED);
    CHECK(length_of_file() == ENSIO_SPOOL_BYTES);
}

/* After a refusal, smaller windows are requested at once, others only after a pause. */
static void without_memory(void)
{
    begin();
    world_limit_memory(1);
    struct ensio_window *refused = ensio_window_make(ENSIO_WINDOW_EVENTS, 65536);
    const uint64_t allocated = ensio_spool->allocated_bytes;
    world_limit_memory(0);
    CHECK(!refused && allocated == ENSIO_SPOOL_BYTES);
    ensio_spool_lose();
    CHECK(ensio_losses->dropped_for[ENSIO_DROPPED_MEMORY] == 1 && ensio_spool->lost_calls == 1);
    CHECK(ensio_window_make(ENSIO_WINDOW_EVENTS, 4096));
    CHECK(ensio_window_make(ENSIO_WINDOW_SCRATCH, 65536)); /* another kind */
    const uint64_t since = ensio_clock_ns(CLOCK_MONOTONIC);
    while (!ensio_window_make(ENSIO_WINDOW_EVENTS, 65536)) /* a second or two at most, by the ticks */
        CHECK(ensio_clock_ns(CLOCK_MONOTONIC) - since < 60000000000U);
}

/* A spool that was removed or replaced cannot grow, and the file in its place stays as it is. */
static void replaced(void)
{
    char path[400];
    begin();
    snprintf(path, sizeof path, "%s/%s", world_folder(), ensio_spool_name());
    CHECK(unlink(path) == 0);
    FILE *other = fopen(path, "w");
    CHECK(other && fputs("mine", other) >= 0 && fclose(other) == 0);
    CHECK(!ensio_window_make(ENSIO_WINDOW_EVENTS, 64 * MIB)); /* longer than the file */
    ensio_spool_drop();
    CHECK(ensio_losses->dropped_for[ENSIO_DROPPED_UNREACHABLE] == 1);
    CHECK(ensio_window_make(ENSIO_WINDOW_EVENTS, 65536)); /* in what it already has */
    ensio_spool_end(ENSIO_STATE_ENDED);
    CHECK(length_of_file() == 4);
}

struct texts {
    uint64_t count, bytes, windows, next;
};

static void read_texts(const char *first, uint32_t bytes, struct texts *texts)
{
    for (uint32_t at = 0; at < bytes;) {
        const struct ensio_text *text = (const struct ensio_text *)(const void *)(first + at);
        if (text->kind == ENSIO_TEXT_FILE) {
            CHECK(text->id == texts->next++);
            for (uint32_t i = 0; i < text->length; i++)
                CHECK(((const char *)(text + 1))[i] == (char)('a' + text->id % 26));
            texts->count++;
            texts->bytes += text->length;
        }
        at += (uint32_t)(sizeof *text + (text->length + 7U) / 8 * 8);
    }
}

static void look_for_texts(const struct ensio_window *window, uint64_t position, void *state)
{
    (void)position;
    if (window->kind != ENSIO_WINDOW_TEXT)
        return;
    ((struct texts *)state)->windows++;
    read_texts((const char *)window + ENSIO_WINDOW_HEADER_BYTES, window->text_bytes, state);
}

/* Texts fill the first window to its last byte, then separate windows; one of any length gets in. */
static void texts(void)
{
    static char text[200000];
    uint64_t bytes, stored = 0;
    struct texts found = {0};
    begin();
    const uint32_t room = ENSIO_SPOOL_BYTES - ENSIO_SPOOL_TEXT_BYTES - ensio_spool->text_bytes;
    const uint32_t lengths[] = {0, 1, 7, 8, 9, 1000, 0, 20000, 65536, 65536 * 2, 200000, 3};
    uint32_t left = room;
    for (uint32_t id = 0; id < 12; id++) {
        uint32_t length = lengths[id];
        if (id == 6) /* exactly what is left in the first window */
            length = left - (uint32_t)sizeof(struct ensio_text);
        memset(text, 'a' + (int)(id % 26), length);
        CHECK(ensio_text_store(ENSIO_TEXT_FILE, id, text, length) == 0);
        stored += length;
        left -= (uint32_t)sizeof(struct ensio_text) + (length + 7) / 8 * 8;
        if (id == 6)
            CHECK(left == 0 && ensio_spool->text_bytes == ENSIO_SPOOL_BYTES - ENSIO_SPOOL_TEXT_BYTES);
    }
    const uint8_t *file = world_spool_file(&bytes);
    read_texts((const char *)file + ENSIO_SPOOL_TEXT_BYTES, ensio_spool->text_bytes, &found);
    CHECK(found.count == 7);
    world_each_window(file, bytes, look_for_texts, &found);
    CHECK(found.count == 12 && found.bytes == stored && found.windows == 3);
}

/* The two readings of the clock alternate, and the end cuts the file to its contents. */
static void end(void)
{
    begin();
    CHECK(ensio_window_make(ENSIO_WINDOW_EVENTS, 65536) && length_of_file() > ENSIO_SPOOL_BYTES + 65536);
    const uint32_t before = ensio_spool->last_is_spare;
    uint64_t ticks = ensio_spool->first.ticks;
    for (uint32_t i = 1; i <= 5; i++) {
        const struct ensio_clock_reading last = ensio_spool->last_is_spare ? ensio_spool->spare : ensio_spool->last;
        ensio_spool_touch();
        CHECK(ensio_spool->last_is_spare == ((before + i) & 1));
        const struct ensio_clock_reading now = ensio_spool->last_is_spare ? ensio_spool->spare : ensio_spool->last;
        const struct ensio_clock_reading kept = ensio_spool->last_is_spare ? ensio_spool->last : ensio_spool->spare;
        CHECK(now.ticks > ticks && memcmp(&kept, &last, sizeof kept) == 0);
        ticks = now.ticks;
    }
    ensio_spool_end(ENSIO_STATE_ENDED);
    CHECK(length_of_file() == ENSIO_SPOOL_BYTES + 65536 && ensio_spool->state == ENSIO_STATE_ENDED);
    CHECK(ensio_window_make(ENSIO_WINDOW_EVENTS, 65536)); /* a thread that is not done yet */
    CHECK(length_of_file() >= ensio_spool->allocated_bytes);
    const uint32_t number = ensio_spool_number;
    CHECK(ensio_spool_remove() == 0 && !ensio_spool && ensio_spool_remove() == -ENOENT);
    CHECK(ensio_ensure_spool() == 0 && ensio_spool_number == number + 1);
    CHECK(ensio_spool->allocated_bytes == ENSIO_SPOOL_BYTES && ensio_spool->dropped_events == 0);
}

int main(void)
{
    CASE(windows);
    CASE(parts);
    CASE(limited_size);
    CASE(no_size);
    CASE(without_memory);
    CASE(replaced);
    CASE(texts);
    CASE(end);
    return 0;
}
