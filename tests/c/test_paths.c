/* Numbers of paths: one for each path up to the limits, and folders that stand for the rest. */
#include "recorder_world.h"

#include <core/lock.h>
#include <files/paths.h>

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#define MOST_PATHS 61438
#define MOST_PATH_BYTES (8U << 20)
#define MOST_OTHERS 4096

static char path[6000];

static void begin(void)
{
    world_begin_with_spool(ENSIO_TRACE);
    ensio_lock();
}

static const char *numbered(const char *folder, uint32_t n)
{
    snprintf(path, sizeof path, "%s/%u", folder, n);
    return path;
}

struct stored {
    uint64_t texts;
    uint8_t seen[MOST_PATHS + MOST_OTHERS + 10]; /* by number: how often its path is in the spool */
};

static void read_texts(const char *first, uint32_t bytes, struct stored *stored)
{
    for (uint32_t at = 0; at < bytes;) {
        const struct ensio_text *text = (const struct ensio_text *)(const void *)(first + at);
        if (text->kind == ENSIO_TEXT_FILE) {
            const char *own = ensio_file_path(text->id);
            CHECK(own && strlen(own) == text->length && memcmp(own, text + 1, text->length) == 0);
            CHECK(text->id < sizeof stored->seen);
            stored->seen[text->id]++;
            stored->texts++;
        }
        at += (uint32_t)(sizeof *text + (text->length + 7U) / 8 * 8);
    }
}

static void look(const struct ensio_window *window, uint64_t position, void *state)
{
    (void)position;
    if (window->kind == ENSIO_WINDOW_TEXT)
        read_texts((const char *)window + ENSIO_WINDOW_HEADER_BYTES, window->text_bytes, state);
}

/* Every number below `end` is in the spool once, with its path. */
static void check_stored(uint32_t end)
{
    static struct stored stored;
    uint64_t bytes;
    memset(&stored, 0, sizeof stored);
    const uint8_t *file = world_spool_file(&bytes);
    read_texts((const char *)file + ENSIO_SPOOL_TEXT_BYTES, ensio_spool->text_bytes, &stored);
    world_each_window(file, bytes, look, &stored);
    munmap((void *)(uintptr_t)file, bytes);
    CHECK(stored.texts == end - 1);
    for (uint32_t number = 1; number < end; number++)
        CHECK(stored.seen[number] == 1);
}

/* Numbers begin at 1, stay the same while the table grows, and differ for different paths. */
static void numbers(void)
{
    begin();
    CHECK(!ensio_file_path(0) && !ensio_file_path(1));
    for (uint32_t n = 1; n <= 3000; n++)
        CHECK(ensio_file_number(numbered("/data", n)) == n);
    for (uint32_t n = 3000; n > 0; n--) {
        CHECK(ensio_file_number(numbered("/data", n)) == n);
        CHECK(strcmp(ensio_file_path(n), path) == 0);
    }
    CHECK(!ensio_file_path(3001) && ensio_losses->calls_on_other_paths == 0);
    CHECK(ensio_file_number("") == 3001 && strcmp(ensio_file_path(3001), "") == 0);
    check_stored(3002);
}

/* The 61,439th path gets the number of its folder's others; those before keep theirs. */
static void many(void)
{
    begin();
    for (uint32_t n = 1; n <= MOST_PATHS; n++)
        CHECK(ensio_file_number(numbered("/data/a", n)) == n);
    const uint32_t others = ensio_file_number("/data/b/one");
    CHECK(others == MOST_PATHS + 1 && strcmp(ensio_file_path(others), "/data/b/" ENSIO_OTHER_PATHS) == 0);
    CHECK(ensio_file_number("/data/b/two") == others && ensio_file_number("/data/b/one") == others);
    CHECK(strcmp(ensio_file_path(ensio_file_number("/data/a/x")), "/data/a/" ENSIO_OTHER_PATHS) == 0);
    CHECK(ensio_losses->calls_on_other_paths == 4);
    CHECK(ensio_file_number(numbered("/data/a", 77)) == 77 && ensio_losses->calls_on_other_paths == 4);
    /* Of a number that stands for others, no file is the first one opened. */
    CHECK(ensio_file_is_first_opened(77) && !ensio_file_is_first_opened(77));
    CHECK(!ensio_file_is_first_opened(others));
    /* Folders have a limit too; beyond it the nearest folder above that has a number stands for them. */
    for (uint32_t n = 3; n <= MOST_OTHERS; n++) {
        snprintf(path, sizeof path, "/f/%u/x", n);
        CHECK(ensio_file_number(path) == MOST_PATHS + n);
    }
    CHECK(ensio_file_number("/data/b/deep/er/x") == others);
    const uint32_t all = ensio_file_number("/elsewhere/x");
    CHECK(all == MOST_PATHS + MOST_OTHERS + 1 && strcmp(ensio_file_path(all), ENSIO_OTHER_PATHS) == 0);
    CHECK(ensio_file_number("/another/x") == all && ensio_file_number("relative") == all);
    check_stored(all + 1);
}

/* Long paths: the limit of bytes, and one longer than any that the kernel knows. */
static void long_paths(void)
{
    begin();
    memset(path, 'x', sizeof path);
    path[0] = '/';
    path[4095] = '\0';
    uint32_t kept = 0;
    uint64_t bytes = 0;
    for (;; kept++) {
        memcpy(path + 1, "00000", 5);
        for (uint32_t n = kept, at = 5; n; n /= 10)
            path[at--] = (char)('0' + n % 10);
        const uint32_t number = ensio_file_number(path);
        CHECK(number == kept + 1);
        if (strcmp(ensio_file_path(number), "/" ENSIO_OTHER_PATHS) == 0)
            break;
        bytes += 4096;
    }
    CHECK(bytes == MOST_PATH_BYTES && kept == MOST_PATH_BYTES / 4096);
    memset(path, 'y', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    path[0] = path[100] = '/';
    CHECK(strcmp(ensio_file_path(ensio_file_number(path)), ENSIO_OTHER_PATHS) == 0);
}

/* Another spool gets a path when it is used there, and once. */
static void next_spool(void)
{
    begin();
    for (uint32_t n = 1; n <= 10; n++)
        ensio_file_number(numbered("/data", n));
    ensio_spool_forget();
    CHECK(ensio_ensure_spool() == 0);
    CHECK(ensio_file_number(numbered("/data", 1)) == 1 && ensio_file_store(2) == 0 && ensio_file_store(2) == 0);
    CHECK(ensio_file_store(0) == 0);
    check_stored(3);
}

/* Without memory a path has no number, and nothing is left behind. */
static void without_memory(void)
{
    begin();
    world_limit_memory(1);
    const uint32_t number = ensio_file_number("/data/1");
    world_limit_memory(0);
    CHECK(number == 0);
    CHECK(ensio_file_number("/data/1") == 1);
    check_stored(2);
}

#define THREADS 4
#define SHARED_PATHS 5000
static uint32_t numbers_of[THREADS][SHARED_PATHS];

static void *number_all(void *given)
{
    uint32_t *const own = given;
    static const uint32_t steps[THREADS] = {1, 3, 7, 4999}; /* prime to the number of paths */
    const uint32_t step = steps[(own - numbers_of[0]) / SHARED_PATHS];
    for (uint32_t i = 0, n = 0; i < SHARED_PATHS; i++, n = (n + step) % SHARED_PATHS) {
        char shared[64];
        snprintf(shared, sizeof shared, "/shared/%u", n);
        own[n] = ensio_file_number(shared);
    }
    return NULL;
}

/* Threads add the same paths at the same time, in different orders: each has one number, and its text is stored. */
static void together(void)
{
    static struct stored stored;
    pthread_t threads[THREADS];
    uint64_t bytes;
    world_begin_with_spool(ENSIO_TRACE);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, number_all, numbers_of[i]) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    const uint8_t *file = world_spool_file(&bytes);
    read_texts((const char *)file + ENSIO_SPOOL_TEXT_BYTES, ensio_spool->text_bytes, &stored);
    world_each_window(file, bytes, look, &stored);
    for (uint32_t n = 0; n < SHARED_PATHS; n++) {
        const uint32_t number = numbers_of[0][n];
        CHECK(number && strcmp(ensio_file_path(number), numbered("/shared", n)) == 0 && stored.seen[number]);
        for (int i = 1; i < THREADS; i++)
            CHECK(numbers_of[i][n] == number);
    }
}

int main(void)
{
    CASE(numbers);
    CASE(together);
    CASE(many);
    CASE(long_paths);
    CASE(next_spool);
    CASE(without_memory);
    return 0;
}
