#include "life.h"

#include "descriptors.h"
#include "files.h"
#include "lock.h"
#include "raw.h"
#include "recorder.h"
#include "run_directory.h"
#include "settings.h"
#include "spool.h"
#include "text.h"
#include "thread.h"

#include <calls/calls.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

static struct ensio_process nobody;
struct ensio_process *ensio_process = &nobody;

static int begun; /* survives a fork, unlike *ensio_process */
static struct ensio_held held_over_fork;

/* The traced program goes on whatever happens; that there will be no trace is said once, on standard error. */
static void say_why_not(int error)
{
    char line[2 * ENSIO_PATH_ROOM];
    struct ensio_string message = ensio_string_in(line, sizeof line);
    ensio_settings.off = 1;
    if (ensio_settings.rank > 0)
        return;
    ensio_add(&message, "ensio: no I/O is recorded, because ");
    ensio_add(&message, ensio_run_directory[0] ? ensio_run_directory : "the current folder");
    ensio_add(&message, " cannot be written to (");
    ensio_add(&message, strerrordesc_np(-error) ? strerrordesc_np(-error) : "unknown error");
    ensio_add(&message, "); set ENSIO_DIR to a folder with space that is yours, or ENSIO_DISABLE=1.\n");
    syscall(SYS_write, 2, message.text, message.length);
}

int ensio_recording(void)
{
    if (ensio_spool)
        return 0;
    if (ensio_settings.off)
        return -ENOENT;
    int made = ensio_spool_make();
    if (made != 0) {
        say_why_not(made);
        return made;
    }
    ensio_text_store(ENSIO_TEXT_CALLS, 0, ensio_calls, (uint32_t)strlen(ensio_calls));
    ensio_files_store_again();
    return 0;
}

static void before_fork(void)
{
    held_over_fork = ensio_lock();
}

static void after_fork_in_parent(void)
{
    ensio_descriptors_shared();
    ensio_unlock(held_over_fork);
}

static void after_fork_in_child(void)
{
    ensio_process->generation = 0;
    ensio_unlock(held_over_fork);
}

static void begin_first(void)
{
    begun = 1;
    ensio_calls_resolve();
    ensio_settings_read();
    if (ensio_settings.off)
        return;
    ensio_clock_choose();
    int joined = ensio_run_directory_join();
    if (joined != 0) {
        say_why_not(joined);
        return;
    }
    struct ensio_process *page =
        mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page != MAP_FAILED) {
        madvise(page, sizeof *page, MADV_WIPEONFORK); /* older kernels rely on the fork handler alone */
        ensio_process = page;
    }
    ensio_threads_begin();
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

int ensio_begin(void)
{
    if (!begun) {
        begin_first();
    } else if (!ensio_process->generation) { /* a forked child: it makes a spool when it has something to record */
        ensio_spool_forget();
        ensio_descriptors_shared();
    }
    if (!ensio_settings.off)
        ensio_process->generation = ensio_raw_pid();
    return !ensio_settings.off;
}

void ensio_end(void)
{
    if (ensio_settings.off || !ensio_process->generation || !ensio_own_memory())
        return;
    struct ensio_held held = ensio_lock();
    if (ensio_spool) {
        ensio_spool->excluded_calls += ensio_thread.excluded_calls;
        ensio_thread.excluded_calls = 0;
        ensio_spool_end();
    }
    ensio_unlock(held);
}

void ensio_spawned(void)
{
    struct ensio_held held = ensio_lock();
    ensio_descriptors_shared();
    ensio_unlock(held);
}

int ensio_own_memory(void)
{
    int error = errno;
    uint32_t pid = ensio_raw_pid();
    errno = error;
    return pid == ensio_process->generation;
}

void ensio_set_rank(int rank, int tasks)
{
    struct ensio_held held = ensio_lock();
    ensio_settings.rank = rank;
    ensio_settings.tasks = (uint32_t)tasks;
    if (ensio_spool) {
        ensio_spool->rank = rank;
        ensio_spool->tasks = (uint32_t)tasks;
    }
    ensio_unlock(held);
}

__attribute__((constructor)) static void at_start(void)
{
    if (!ensio_ready(&ensio_thread))
        return;
    struct ensio_held held = ensio_lock();
    ensio_recording();
    ensio_unlock(held);
}

__attribute__((destructor)) static void at_exit(void)
{
    ensio_end();
}
