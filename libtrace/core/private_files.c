#include "private_files.h"

#include "bounded_string.h"
#include "rawsys.h"

#include <dirent.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#ifndef SYS_close_range
#define SYS_close_range 436 /* since Linux 5.9 */
#endif
#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE (1U << 1)
#endif
#define STACK_BYTES (256 << 10)
#define LINE_ROOM 16384

struct ensio_own_bytes ensio_own_bytes;

/* The C library's internal name of clone: ThreadSanitizer treats calls of the public one as forks. */
extern int __clone(int (*run)(void *given), void *stack, int flags, void *given, ...);

/* Whether this process has called pthread_create; missing before glibc 2.32. */
extern char __libc_single_threaded __attribute__((weak));

/* Before main, no thread was made in another way. */
static int is_starting;

struct errand {
    int64_t (*what)(void *state);
    void *state;
    int64_t result;
    int shares_table, is_done;
};

/* Only the thread that holds the lock reads and writes this. It is volatile because clone is declared as a leaf
 * function. */
static volatile int table_is_ours;

static char kept_text[2048];
static struct ensio_string kept = {.text = kept_text, .room = sizeof kept_text};

void ensio_tell(const char *text, uint32_t length)
{
    long wrote;
    if (table_is_ours)
        ensio_add_bytes(&kept, text, length);
    else if (length && (wrote = ENSIO_RAW(SYS_write, 2, text, length)) > 0)
        ensio_own_bytes.written += (uint64_t)wrote;
}

/* The kernel's list leaves out what is closed on the way. */
static int close_copy(int list, const struct dirent64 *copy, void *unused)
{
    if (copy->d_name[0] != '.' && atoi(copy->d_name) != list)
        ensio_raw_close(atoi(copy->d_name));
    return 0;
}

/* A copy of a descriptor holds what its last close releases: a lock, a port, the end of a pipe. The kernel lets the
 * program go on before it closes what this thread leaves open, so nothing may be left, and nothing held for longer than
 * necessary: the program has other threads. */
static int run(void *given)
{
    struct errand *errand = given;
    if (errand->shares_table) {
        errand->result = ENSIO_RAW(SYS_close_range, 0U, ~0U, CLOSE_RANGE_UNSHARE);
        if (errand->result < 0)
            return 0;
    } else
        ensio_private_each_entry("/proc/thread-self/fd", close_copy, NULL);
    errand->result = errand->what(errand->state);
    errand->is_done = 1;
    return 0;
}

/* In a process with one thread, nothing else can change the descriptor table. (A process that shares its table by
 * CLONE_FILES without CLONE_THREAD is not recognised.) The folder has two links and one for each thread. */
static int is_alone(void)
{
    struct stat threads;
    if (is_starting && &__libc_single_threaded && __libc_single_threaded)
        return 1; /* /proc would take several microseconds */
    return ENSIO_RAW(SYS_newfstatat, AT_FDCWD, "/proc/self/task", &threads, 0) == 0 && threads.st_nlink == 3;
}

/* Valgrind aborts a program that creates such a thread, but runs one thread at a time anyway. The first answer is kept,
 * because the program may change its environment. */
static int is_under_valgrind(void)
{
    static int answer = -1;
    if (answer < 0) {
        const char *preloaded = getenv("LD_PRELOAD");
        answer = preloaded && strstr(preloaded, "/vgpreload_");
    }
    return answer;
}

/* The new thread uses this thread's thread-local memory and signal mask. It leaves the program's table and begins an
 * empty one; where the kernel cannot do that in one step, it has a copy. */
static int64_t run_in_thread(struct errand *errand, int shares_table)
{
    const int flags = CLONE_VM | CLONE_FS | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_VFORK;
    char *stack = ensio_raw_memory(STACK_BYTES);
    if (!stack)
        return -ENOMEM;
    errand->shares_table = shares_table;
    table_is_ours = 1;
    const long made =
        ensio_raw_result(__clone(run, stack + STACK_BYTES, flags | (shares_table ? CLONE_FILES : 0), errand));
    table_is_ours = 0;
    ensio_tell(kept.text, kept.length);
    kept.length = 0;
    ensio_raw_unmap(stack, STACK_BYTES);
    return made < 0 ? made : errand->result;
}

void ensio_private_files_start(int begins)
{
    is_starting = begins;
}

int64_t ensio_with_private_files(int64_t (*what)(void *state), void *state)
{
    struct errand errand = {.what = what, .state = state, .is_done = 0};
    if (table_is_ours)
        return what(state);
    if (is_alone() || is_under_valgrind()) {
        const int64_t result = what(state);
        if (result != -EMFILE || is_under_valgrind())
            return result;
    }
    int64_t result = run_in_thread(&errand, 1);
    if (!errand.is_done)
        result = run_in_thread(&errand, 0);
    const int is_emulated = result == -EINVAL && !errand.is_done; /* qemu-user has a thread, and makes no such one */
    return is_emulated && &__libc_single_threaded && __libc_single_threaded ? what(state) : result;
}

long ensio_descriptor_name(int fd, char *to, uint32_t room)
{
    char link[64];
    struct ensio_string name = ensio_string_in(link, sizeof link);
    ensio_add(&name, "/proc/thread-self/fd/");
    ensio_add_number(&name, (unsigned)fd);
    const long length = ensio_raw_readlink(link, to, room);
    return length > 0 ? length : 0;
}

int ensio_private_open(const char *path, int flags, unsigned mode)
{
    int fd = ensio_raw_open(path, flags, mode);
    struct rlimit limit;
    if (fd != -EMFILE || !table_is_ours || ENSIO_RAW(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &limit) != 0 ||
        !limit.rlim_cur)
        return fd;
    ensio_raw_close((int)limit.rlim_cur - 1);
    return ensio_raw_open(path, flags, mode);
}

int ensio_private_each_entry(const char *folder, int (*each)(int fd, const struct dirent64 *entry, void *state),
                             void *state)
{
    static char entries[16384] __attribute__((aligned(8)));
    const int fd = ensio_private_open(folder, O_RDONLY | O_DIRECTORY, 0);
    int stop = 0;
    if (fd < 0)
        return 0;
    for (long got; !stop && (got = ENSIO_RAW(SYS_getdents64, fd, entries, sizeof entries)) > 0;)
        for (long at = 0; at < got && !stop;) {
            const struct dirent64 *entry = (const struct dirent64 *)(const void *)(entries + at);
            stop = each(fd, entry, state);
            at += entry->d_reclen;
        }
    ensio_raw_close(fd);
    return stop;
}

void ensio_private_each_line(const char *path, int (*each)(char *line, void *state), void *state)
{
    static char buffer[LINE_ROOM];
    size_t held = 0;
    int fd = ensio_private_open(path, O_RDONLY, 0), stop = 0;
    if (fd < 0)
        return;
    for (long got; !stop && (got = ensio_raw_read(fd, buffer + held, sizeof buffer - held)) > 0;) {
        char *line = buffer, *end;
        held += (size_t)got;
        while (!stop && (end = memchr(line, '\n', held - (size_t)(line - buffer))) != NULL) {
            *end = '\0';
            stop = each(line, state);
            line = end + 1;
        }
        held -= (size_t)(line - buffer);
        memmove(buffer, line, held);
        if (held == sizeof buffer)
            held = 0;
    }
    ensio_raw_close(fd);
}
