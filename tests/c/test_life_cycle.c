/* A whole recorder, as programs link it: forks in the middle of stores, programs that continue as others, the end.
 *
 * The program runs itself anew for each case, with ENSIO_DIR set, as recording begins before main. */
#include "check.h"
#include "window_events.h"

#include <core/lock.h>
#include <core/recorder.h>
#include <jobfile/process_file.h>
#include <process/lifecycle.h>
#include <spool/spool.h>

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 3
#define FORKS 40
#define CALLS 50U /* of each child */

static const char *folder(void)
{
    return getenv("ENSIO_DIR");
}

/* A spool as a reader finds it. */
struct left {
    uint32_t state, folding, threads;
    uint64_t events, writes, pwrites, not_summarised, counted;
};

static void add_event(const struct ensio_event *event, void *state)
{
    struct left *left = state;
    left->events++;
    left->writes += event->call == 6;
    left->pwrites += event->call == 8;
}

static void add_window(const struct ensio_window *window, struct left *left)
{
    const char *first = (const char *)window + ENSIO_WINDOW_HEADER_BYTES;
    const struct ensio_event *events = (const struct ensio_event *)(const void *)first;
    const struct ensio_cell *cells = (const struct ensio_cell *)(const void *)first;
    const int has_events = window->kind == ENSIO_WINDOW_EVENTS || window->kind == ENSIO_WINDOW_CODED;
    if (has_events)
        events_of_window(window, add_event, left);
    for (uint64_t i = window->summarised; has_events && i < ensio_window_slots(window); i++)
        left->not_summarised += events[i].call != 0;
    for (uint32_t i = 0; window->kind == ENSIO_WINDOW_CELLS && i < window->summarised; i++)
        left->counted += cells[i].count;
}

/* Reads the spool of a process; 0 if there is none. */
static int read_spool(pid_t process, struct left *left)
{
    char part[32], path[600];
    struct stat found;
    int there_is = 0;
    snprintf(part, sizeof part, "-%d-", (int)process);
    *left = (struct left){0};
    DIR *entries = opendir(folder());
    CHECK(entries);
    for (struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        if (!strstr(entry->d_name, part) || !strstr(entry->d_name, ".spool"))
            continue;
        CHECK(!there_is++);
        snprintf(path, sizeof path, "%s/%s", folder(), entry->d_name);
        const int fd = open(path, O_RDONLY);
        CHECK(fd >= 0 && fstat(fd, &found) == 0);
        const char *file = mmap(NULL, (size_t)found.st_size, PROT_READ, MAP_SHARED, fd, 0);
        CHECK(file != MAP_FAILED && close(fd) == 0);
        const struct ensio_spool *head = (const struct ensio_spool *)(const void *)file;
        CHECK(head->magic == ENSIO_SPOOL_MAGIC && head->pid == (uint32_t)process && head->dropped_events == 0);
        CHECK(head->allocated_bytes <= (uint64_t)found.st_size);
        left->state = head->state;
        left->folding = head->folding;
        left->threads = head->threads;
        for (uint64_t at = ENSIO_SPOOL_BYTES; at < head->allocated_bytes;) {
            const struct ensio_window *window = (const struct ensio_window *)(const void *)(file + at);
            if (window->magic == ENSIO_WINDOW_MAGIC)
                add_window(window, left);
            at += window->magic == ENSIO_WINDOW_MAGIC ? window->bytes : ENSIO_WINDOW_UNIT_BYTES;
        }
        munmap((void *)(uintptr_t)file, (size_t)found.st_size);
    }
    closedir(entries);
    return there_is;
}

static void wait_for(pid_t child)
{
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

static int data;

static void open_data(void)
{
    char path[600];
    snprintf(path, sizeof path, "%s/data", folder());
    data = open(path, O_RDWR | O_CREAT, 0600);
    CHECK(data >= 0);
}

static volatile int stop;
static uint64_t written[THREADS];

static void *write_on(void *given)
{
    uint64_t *count = given;
    for (; !stop; ++*count)
        CHECK(pwrite(data, "x", 1, 0) == 1);
    return NULL;
}

/* While other threads store, children are forked, which record only their own calls, from their first one on. */
static void forks(void)
{
    pthread_t threads[THREADS];
    struct left left;
    pid_t children[FORKS];
    open_data();
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, write_on, &written[i]) == 0);
    for (int i = 0; i < FORKS; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            for (uint32_t n = 0; n < CALLS; n++)
                CHECK(write(data, "y", 1) == 1);
            if (i % 2)
                kill(getpid(), SIGKILL);
            _exit(0);
        }
        int status;
        CHECK(children[i] > 0 && waitpid(children[i], &status, 0) == children[i]);
        CHECK(i % 2 ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL : status == 0);
    }
    stop = 1;
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < FORKS; i++) {
        CHECK(read_spool(children[i], &left));
        CHECK(left.writes == CALLS && left.pwrites == 0 && left.threads == 1 && left.folding == 0);
        CHECK(left.counted + left.not_summarised == left.events);
        CHECK(left.state == (i % 2 ? ENSIO_STATE_RUNNING : ENSIO_STATE_ENDED));
    }
    CHECK(read_spool(getpid(), &left) && left.writes == 0 && left.state == ENSIO_STATE_RUNNING);
    uint64_t all = 0;
    for (int i = 0; i < THREADS; i++)
        all += written[i];
    CHECK(left.counted + left.not_summarised == left.events && left.pwrites == all && all > 0);
}

/* A child that makes no call leaves no spool. One that makes calls after its parent's end leaves one that is whole. */
static void quiet_children(void)
{
    struct left left;
    open_data();
    const pid_t quiet = fork();
    if (quiet == 0)
        _exit(0);
    wait_for(quiet);
    CHECK(!read_spool(quiet, &left));
    const pid_t child = fork();
    if (child == 0) {
        const pid_t grandchild = fork();
        if (grandchild == 0)
            _exit(write(data, "z", 1) != 1);
        wait_for(grandchild);
        CHECK(read_spool(grandchild, &left) && left.writes == 1);
        _exit(0);
    }
    wait_for(child);
}

/* A process that hands over and takes back goes on in the same spool. */
static void handing_over(void)
{
    struct left left;
    open_data();
    CHECK(write(data, "a", 1) == 1 && ensio_hand_over());
    CHECK(read_spool(getpid(), &left) && left.state == ENSIO_STATE_REPLACED && left.writes == 1);
    CHECK(!ensio_hand_over()); /* not twice */
    ensio_take_back();
    CHECK(write(data, "b", 1) == 1);
    CHECK(read_spool(getpid(), &left) && left.state == ENSIO_STATE_RUNNING && left.writes == 2);
    char *const nothing[] = {NULL};
    CHECK(execv("/nowhere/there", nothing) == -1); /* an exec that fails does the same */
    CHECK(read_spool(getpid(), &left) && left.state == ENSIO_STATE_RUNNING);
}

static void executed(void)
{
    struct left left;
    open_data();
    const char *const pid = getenv("TEST_FIRST");
    CHECK(write(data, "c", 1) == 1 && pid && atoi(pid) == getpid());
    ensio_end();
    /* Two spools of one process, of which read_spool would find two: the first one was renamed by the test. */
    CHECK(read_spool(getpid(), &left) && left.state == ENSIO_STATE_ENDED && left.writes == 1);
}

/* After exec the next program begins its own spool, and the first one is complete. */
static void replaced(void)
{
    char number[20], path[600], hidden[600];
    struct left left;
    open_data();
    CHECK(write(data, "d", 1) == 1 && ensio_hand_over());
    CHECK(read_spool(getpid(), &left) && left.state == ENSIO_STATE_REPLACED && left.writes == 1);
    snprintf(path, sizeof path, "%s/%s", folder(), ensio_spool_name());
    snprintf(hidden, sizeof hidden, "%s/before", folder());
    CHECK(rename(path, hidden) == 0);
    snprintf(number, sizeof number, "%d", (int)getpid());
    setenv("TEST_FIRST", number, 1);
    execl("/proc/self/exe", "test_life_cycle", "executed", (char *)NULL);
    CHECK(0);
}

/* The end cuts the file and says so; calls that come later are still recorded. */
static void end(void)
{
    struct left left;
    open_data();
    ensio_end();
    CHECK(read_spool(getpid(), &left) && left.state == ENSIO_STATE_ENDED);
    for (uint32_t n = 0; n < 5000; n++)
        CHECK(write(data, "e", 1) == 1);
    ensio_end();
    CHECK(read_spool(getpid(), &left) && left.writes == 5000 && left.state == ENSIO_STATE_ENDED);
    /* Only the calls of reading the spool came after the end. */
    CHECK(left.counted + left.not_summarised == left.events && left.counted >= 5000 && left.not_summarised < 20);
}

static const struct {
    const char *name;
    void (*what)(void);
} cases[] = {
    {"forks", forks},
    {"quiet_children", quiet_children},
    {"handing_over", handing_over},
    {"replaced", replaced},
    {"executed", executed},
    {"end", end},
};

/* Runs this program anew for a case, in a separate folder. */
static void run(const char *name)
{
    char place[300], command[400];
    snprintf(place, sizeof place, "%s/ensio-test-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    CHECK(mkdtemp(place));
    const pid_t child = fork();
    if (child == 0) {
        setenv("ENSIO_DIR", place, 1);
        setenv("ENSIO_JOBFILE", "0", 1); /* spools are looked at as processes leave them */
        unsetenv("ENSIO_DISABLE");
        execl("/proc/self/exe", "test_life_cycle", name, (char *)NULL);
        _exit(9);
    }
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    snprintf(command, sizeof command, "rm -r %s", place);
    CHECK(system(command) == 0);
    if (status != 0)
        fprintf(stderr, "case %s failed: status %#x\n", name, (unsigned)status);
    CHECK(status == 0);
}

/* 0.15 s, and a fifth of the run, of which 5 s at most: what a program waits for grows with what it recorded. */
static void time_to_code(void)
{
    CHECK(ensio_coding_ns(0) == 150000000U);
    CHECK(ensio_coding_ns(2000000000U) == 550000000U);
    CHECK(ensio_coding_ns(3600000000000U) == 5000000000U);
}

int main(int count, char **words)
{
    time_to_code();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (count > 1 && strcmp(words[1], cases[i].name) == 0) {
            cases[i].what();
            return 0;
        }
        if (count == 1 && cases[i].what != executed)
            run(cases[i].name);
    }
    return count > 1;
}
