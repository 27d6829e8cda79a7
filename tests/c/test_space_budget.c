/* The budget of a process and of a node: sizes in text, exact limits, and several processes. */
#include "recorder_world.h"

#include <core/lock.h>
#include <spool/space_budget.h>

#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define UNIT ENSIO_WINDOW_UNIT_BYTES
#define ANY UINT64_MAX

static void begin(const char *text)
{
    if (text)
        setenv("ENSIO_MAX_BYTES", text, 1);
    else
        unsetenv("ENSIO_MAX_BYTES");
    world_begin(ENSIO_TRACE);
    ensio_settings.rank = 1; /* a wrong text is not reported here */
    ensio_budget_read();
    ensio_budget_begin(ANY);
}

static uint64_t take(uint64_t bytes, int must)
{
    uint32_t reason = 99;
    return ensio_budget_take(bytes, must, &reason);
}

static const struct {
    const char *text;
    uint64_t bytes; /* 0: ignored */
} sizes[] = {
    {"1", 1},
    {"4096", 4096},
    {"64KiB", 65536},
    {"1MiB", 1 << 20},
    {"3GiB", 3ULL << 30},
    {"1TiB", 1ULL << 40},
    {"7B", 7},
    {"2kB", 2000},
    {"2MB", 2000000},
    {"1GB", 1000000000},
    {"1TB", 1000000000000},
    {"18446744073709551615", UINT64_MAX},
    {"18446744073709551616", 0},
    {"16777216TiB", 0},
    {"16777217TiB", 0},
    {"16777215TiB", 16777215ULL << 40},
    {"99999999999999999999999", 0},
    {"-1", 0},
    {" 1", 0},
    {"1 ", 0},
    {"MiB", 0},
    {"1mib", 0},
    {"1.5MiB", 0},
    {"0", 0},
    {"1MiB,", 0},
    {",1MiB", 0},
    {"1MiB,2MiB,3MiB", 0},
    {"1MiB,x", 0},
    {"5MiB,3MiB", 3 << 20},
    {"3MiB,5MiB", 3 << 20},
    {"8,9", 8},
};
static size_t tried;

static void one_size(void)
{
    begin(sizes[tried].text);
    const uint64_t free_share = ensio_budget_left();
    if (sizes[tried].bytes)
        CHECK(free_share == sizes[tried].bytes);
    else /* the default: a share of what is free */
        CHECK(free_share > 16 && free_share < UINT64_MAX / 10 + 2 && free_share != 1ULL << 40);
}

/* What is left is given exactly, in whole units, and no more. */
static void exact_limit(void)
{
    uint32_t reason = 99;
    begin("100KiB,1GiB");
    CHECK(take(60 * 1024, 0) == 60 * 1024 && ensio_budget_left() == 40 * 1024);
    CHECK(take(40 * 1024 + 1, 0) == 40 * 1024); /* less than requested */
    CHECK(ensio_budget_left() == 0 && ensio_budget_take(UNIT, 0, &reason) == 0 && reason == ENSIO_DROPPED_BUDGET);
    ensio_budget_give_back(UNIT - 1);
    CHECK(ensio_budget_left() == UNIT - 1 && take(UNIT, 0) == 0); /* no part of a unit */
    ensio_budget_give_back(1);
    CHECK(take(UNIT, 0) == UNIT && ensio_budget_left() == 0);
    CHECK(take(0, 0) == 0 && take(0, 1) == 0);
}

/* What must be taken is taken whatever is left, and counts. */
static void exempt(void)
{
    begin("8KiB,16KiB");
    CHECK(take(1 << 20, 1) == 1 << 20 && ensio_budget_left() == 0 && take(UNIT, 0) == 0);
    CHECK(take(UNIT, 1) == UNIT);
    ensio_budget_give_back((1 << 20) + UNIT);
    CHECK(ensio_budget_left() == 8192 && take(1 << 20, 0) == 8192);
}

/* A limit far above what any file system has leaves the floor as the limit. */
static void free_space(void)
{
    uint32_t reason = 99;
    begin("18446744073709551615");
    const uint64_t got = ensio_budget_take(1ULL << 60, 0, &reason);
    CHECK(reason == ENSIO_DROPPED_FLOOR && got < 1ULL << 60 && got % UNIT == 0);
}

/* Processes share one counter: together they get exactly the limit of the node, and each at most its own. */
static void processes(void)
{
    enum { PROCESSES = 4 };
    int status, results[2];
    uint64_t sum = 0, got;
    begin("4MiB,10MiB");
    CHECK(pipe(results) == 0);
    for (int i = 0; i < PROCESSES; i++) {
        const pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            ensio_budget_begin(ANY);
            got = 0;
            for (uint64_t more; (more = take(UNIT * (1 + (got / UNIT) % 3), 0)) > 0;)
                got += more;
            CHECK(got <= 4 << 20 && write(results[1], &got, sizeof got) == sizeof got);
            _exit(0);
        }
    }
    for (int i = 0; i < PROCESSES; i++) {
        CHECK(read(results[0], &got, sizeof got) == sizeof got);
        sum += got;
    }
    for (int i = 0; i < PROCESSES; i++)
        CHECK(wait(&status) > 0 && status == 0);
    /* An attempt that came too late is given back, so that a little may remain, but never too much is taken. */
    CHECK(sum <= 10 << 20 && sum + PROCESSES * 3 * UNIT >= 10 << 20);
    CHECK(ensio_budget_left() == (10 << 20) - sum);
}

static int counter_exists(void)
{
    char path[400];
    struct stat found;
    snprintf(path, sizeof path, "%s/.host.taken", world_folder());
    return stat(path, &found) == 0;
}

/* The last process removes the counter; ending twice counts once. */
static void last_process(void)
{
    int status, go[2];
    char byte = 0;
    begin("1MiB,1MiB");
    CHECK(counter_exists() && pipe(go) == 0);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        ensio_budget_begin(ANY);
        CHECK(take(UNIT, 0) == UNIT && write(go[1], &byte, 1) == 1);
        ensio_budget_end();
        ensio_budget_end();
        _exit(0);
    }
    CHECK(read(go[0], &byte, 1) == 1 && waitpid(child, &status, 0) == child && status == 0);
    CHECK(counter_exists() && ensio_budget_left() == (1 << 20) - UNIT); /* what it took is still on disk */
    ensio_budget_end();
    CHECK(!counter_exists());
}

/* Without ENSIO_MAX_BYTES, a process that takes little needs no file; what it took counts when it joins the others. */
static void small_process(void)
{
    begin(NULL);
    CHECK(!counter_exists() && take(512 << 10, 1) == 512 << 10 && !counter_exists());
    const uint64_t left = ensio_budget_left();
    CHECK(take(UNIT, 0) == UNIT && counter_exists() && ensio_budget_left() == left - UNIT);
    ensio_budget_end();
    CHECK(!counter_exists());
}

static void small_processes_do_not_remove_what_others_share(void)
{
    int status;
    begin(NULL);
    CHECK(take(1 << 20, 1) == 1 << 20 && counter_exists());
    const uint64_t left = ensio_budget_left();
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        ensio_budget_begin(ANY);
        CHECK(take(UNIT, 0) == UNIT);
        ensio_budget_end();
        ensio_budget_begin(ANY);
        CHECK(take(1 << 20, 1) == 1 << 20 && ensio_budget_left() == left - (1 << 20));
        ensio_budget_end();
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(counter_exists() && ensio_budget_left() == left - (1 << 20));
}

/* A counter that others may write to is not used: each process then counts for itself. */
static void counter_of_others(void)
{
    char path[400];
    snprintf(path, sizeof path, "%s/.host.taken", world_folder());
    FILE *file = fopen(path, "w");
    CHECK(file && fclose(file) == 0 && chmod(path, 0666) == 0);
    begin("1MiB,64KiB");
    CHECK(take(1 << 20, 0) == 65536 && take(UNIT, 0) == 0);
    struct stat found;
    CHECK(stat(path, &found) == 0 && found.st_size == 0);
}

int main(void)
{
    for (tried = 0; tried < sizeof sizes / sizeof *sizes; tried++)
        world_case(sizes[tried].text, one_size);
    CASE(exact_limit);
    CASE(exempt);
    CASE(free_space);
    CASE(processes);
    CASE(last_process);
    CASE(small_process);
    CASE(small_processes_do_not_remove_what_others_share);
    CASE(counter_of_others);
    return 0;
}
