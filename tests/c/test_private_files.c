/* Files of the recorder, opened where the program cannot meet their descriptors: alone, among threads that put files on
 * any number, and with a full table. What the program closes is released then, whatever the recorder does. */
#include "recorder_world.h"

#include <core/lock.h>
#include <core/private_files.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NUMBERS 40
#define ROUNDS 300

static char own_path[400], program_path[400];

static void begin(void)
{
    world_begin(ENSIO_TRACE);
    snprintf(own_path, sizeof own_path, "%s/own", world_folder());
    snprintf(program_path, sizeof program_path, "%s/program", world_folder());
}

/* Descriptors that are open, but for the one that lists them. */
static int open_descriptors(void)
{
    int count = -3; /* ".", ".." and itself */
    DIR *folder = opendir("/proc/self/fd");
    CHECK(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static int64_t append_own(void *state)
{
    const int fd = ensio_private_open(own_path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (fd < 0)
        return fd;
    /* Slowly, so that other threads come between. */
    int64_t wrote = 0;
    for (int i = 0; i < 8; i++) {
        sched_yield();
        wrote += write(fd, "recorder", 8);
    }
    *(int *)state = fd;
    close(fd);
    return wrote;
}

static int64_t with_private_files(int64_t (*what)(void *state), void *state)
{
    const struct ensio_held held = ensio_lock();
    const int64_t result = ensio_with_private_files(what, state);
    ensio_unlock(held);
    return result;
}

static uint64_t length_of(const char *path)
{
    struct stat found;
    CHECK(stat(path, &found) == 0);
    return (uint64_t)found.st_size;
}

/* In a process with one thread the call is made right here. */
static void alone(void)
{
    begin();
    const int before = open_descriptors();
    int fd = -1;
    errno = 77;
    CHECK(with_private_files(append_own, &fd) == 64 && errno == 77);
    CHECK(fd > 2 && open_descriptors() == before && length_of(own_path) == 64);
    const size_t length = strlen(own_path);
    snprintf(own_path + length, sizeof own_path - length, "/below");
    CHECK(with_private_files(append_own, &fd) == -ENOTDIR && open_descriptors() == before);
}

static volatile int stop;

/* What a program may do at any time: put its file on any free number, or on any number at all. */
static void *claim_numbers(void *given)
{
    const int own = *(int *)given;
    while (!stop)
        for (int number = own + 1; number < own + NUMBERS; number++) {
            CHECK(dup2(own, number) == number);
            CHECK(write(number, "program.", 8) == 8);
            CHECK(close(number) == 0); /* no other thread took or closed it */
        }
    return NULL;
}

/* Meanwhile, none of our bytes get into its file, and none of its bytes into ours. */
static void among_threads(void)
{
    pthread_t thread;
    char text[8];
    begin();
    int own = open(program_path, O_WRONLY | O_CREAT | O_APPEND, 0600), fd;
    CHECK(own >= 0 && pthread_create(&thread, NULL, claim_numbers, &own) == 0);
    for (int i = 0; i < ROUNDS; i++)
        CHECK(with_private_files(append_own, &fd) == 64);
    stop = 1;
    CHECK(pthread_join(thread, NULL) == 0);
    FILE *file = fopen(own_path, "r");
    for (int i = 0; i < ROUNDS * 8; i++)
        CHECK(fread(text, 8, 1, file) == 1 && memcmp(text, "recorder", 8) == 0);
    CHECK(fread(text, 1, 1, file) == 0 && fclose(file) == 0);
    file = fopen(program_path, "r");
    for (uint64_t left = length_of(program_path) / 8; left > 0; left--)
        CHECK(fread(text, 8, 1, file) == 1 && memcmp(text, "program.", 8) == 0);
    CHECK(fclose(file) == 0 && length_of(program_path) % 8 == 0);
}

static int64_t close_first(void *state)
{
    return close(*(int *)state) == 0 ? append_own((int *)state + 1) : -1;
}

static int64_t open_and_nest(void *state)
{
    int *fds = state;
    fds[0] = ensio_private_open("/dev/null", O_RDONLY, 0);
    const int64_t wrote = with_private_files(close_first, fds);
    CHECK(fcntl(fds[0], F_GETFD) == -1 && errno == EBADF); /* it was the same table */
    return ensio_locked() ? wrote : -5;
}

/* The thread with the copy has our lock, and may ask again for private files. */
static void nested(void)
{
    pthread_t thread;
    int own, fds[2];
    begin();
    own = open(program_path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    const int before = open_descriptors();
    CHECK(pthread_create(&thread, NULL, claim_numbers, &own) == 0);
    CHECK(with_private_files(open_and_nest, fds) == 64);
    CHECK(fds[0] >= 0);
    stop = 1;
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(open_descriptors() <= before); /* they were never here; the thread closes numbers that were inherited */
}

/* From here on, this thread only runs where no other one wants its processor. */
static int64_t yield_always(void *state)
{
    const struct sched_param none = {0};
    (void)state;
    return sched_setscheduler((pid_t)syscall(SYS_gettid), SCHED_IDLE, &none);
}

static void *sleep_only(void *given)
{
    pause();
    return given;
}

/* A lock goes with the program's last close, and a reader sees the end of a pipe, though the thread that had the
 * recorder's files has not ended yet. */
static void released_by_its_close(void)
{
    pthread_t thread;
    cpu_set_t first;
    char byte;
    int ends[2];
    begin();
    CPU_ZERO(&first);
    CPU_SET(sched_getcpu(), &first);
    CHECK(pthread_create(&thread, NULL, sleep_only, NULL) == 0);
    CHECK(sched_setaffinity(0, sizeof first, &first) == 0);
    for (int i = 0; i < 200; i++) {
        int fd = open(program_path, O_RDWR | O_CREAT, 0600);
        CHECK(fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0);
        CHECK(pipe2(ends, O_NONBLOCK) == 0);
        CHECK(with_private_files(yield_always, NULL) == 0);
        CHECK(close(ends[1]) == 0 && read(ends[0], &byte, 1) == 0 && close(ends[0]) == 0);
        CHECK(close(fd) == 0);
        fd = open(program_path, O_RDWR);
        CHECK(flock(fd, LOCK_EX | LOCK_NB) == 0);
        CHECK(close(fd) == 0);
    }
}

static int fill_table(int numbers)
{
    struct rlimit limit;
    int last = -1;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = (rlim_t)numbers;
    setrlimit(RLIMIT_NOFILE, &limit);
    for (int fd; (fd = open("/dev/null", O_RDONLY)) >= 0;)
        last = fd;
    CHECK(errno == EMFILE && last == numbers - 1);
    return last;
}

/* With a full table, another one has room: the program's descriptors stay. */
static void full_table(void)
{
    int fd = -1;
    begin();
    const int last = fill_table(30);
    CHECK(with_private_files(append_own, &fd) == 64 && fd >= 0 && fd < last);
    CHECK(length_of(own_path) == 64);
    for (int number = 3; number <= last; number++)
        CHECK(fcntl(number, F_GETFD) >= 0);
    CHECK(open("/dev/null", O_RDONLY) == -1 && errno == EMFILE);
    CHECK(ensio_private_open(own_path, O_RDONLY, 0) == -EMFILE); /* not in a copy: none is closed */
    CHECK(fcntl(last, F_GETFD) >= 0);
}

/* From here on, this process has no close_range, as before Linux 5.9. */
static void be_an_older_kernel(void)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 436, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog filter = {.len = sizeof steps / sizeof *steps, .filter = steps};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
    CHECK(syscall(436, 0U, ~0U, 0) == -1 && errno == ENOSYS);
}

static void released_on_an_older_kernel(void)
{
    be_an_older_kernel();
    released_by_its_close();
}

static void full_table_on_an_older_kernel(void)
{
    be_an_older_kernel();
    full_table();
}

static int lines_seen;
static size_t bytes_seen;

static int see_line(char *line, void *state)
{
    lines_seen++;
    bytes_seen += strlen(line);
    line[0] = '\0';
    return lines_seen == *(int *)state;
}

static int64_t read_lines(void *state)
{
    ensio_private_each_line(own_path, see_line, state);
    return 0;
}

/* Lines come whole, wherever blocks of the file end; one that is longer than the buffer is skipped. */
static void lines(void)
{
    static char line[20000];
    int never = 0, third = 3;
    size_t bytes = 0;
    begin();
    FILE *file = fopen(own_path, "w");
    for (int i = 0; i < 5000; i++) {
        const size_t length = i == 2500 ? 16383 : (size_t)i % 123;
        memset(line, 'x', length);
        CHECK(fwrite(line, 1, length, file) == length && fputc('\n', file) == '\n');
        bytes += length;
    }
    CHECK(fputs("no end", file) >= 0 && fclose(file) == 0);
    const int before = open_descriptors();
    CHECK(with_private_files(read_lines, &never) == 0);
    CHECK(lines_seen == 5000 && bytes_seen == bytes && open_descriptors() == before);
    lines_seen = 0;
    CHECK(with_private_files(read_lines, &third) == 0 && lines_seen == 3 && open_descriptors() == before);
    file = fopen(own_path, "w");
    memset(line, 'y', sizeof line);
    fprintf(file, "one\n%.*s\nlast\n", (int)sizeof line, line);
    CHECK(fclose(file) == 0);
    lines_seen = 0;
    CHECK(with_private_files(read_lines, &never) == 0 && lines_seen >= 2 && lines_seen <= 3);
}

int main(void)
{
    CASE(alone);
    CASE(among_threads);
    CASE(nested);
    CASE(full_table);
    CASE(released_by_its_close);
    CASE(full_table_on_an_older_kernel);
    CASE(released_on_an_older_kernel);
    CASE(lines);
    return 0;
}
