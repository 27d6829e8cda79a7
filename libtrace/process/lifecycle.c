#include "lifecycle.h"

#include "banner.h"
#include "peer_recorder.h"

#include <calls/calls.h>
#include <core/bounded_string.h>
#include <core/lock.h>
#include <core/private_files.h>
#include <core/rawsys.h>
#include <core/recorder.h>
#include <core/settings.h>
#include <files/aio_requests.h>
#include <files/descriptors.h>
#include <files/folders.h>
#include <files/mappings.h>
#include <jobfile/collector.h>
#include <jobfile/process_file.h>
#include <sites/sites.h>
#include <spool/run_directory.h>
#include <spool/space_budget.h>
#include <spool/process_facts.h>
#include <spool/spool.h>
#include <summary/keep_slowest.h>
#include <surroundings/account.h>
#include <surroundings/sample.h>
#include <threads/thread.h>
#include <threads/windows.h>
#include <time/clock.h>
#include <time/tick_rate.h>

#include <pthread.h>

#ifdef ENSIO_PRELOAD
extern void __asan_init(void) __attribute__((weak));
static int constructed;
#endif

static int begun;                         /* survives a fork, unlike *ensio_process */
static int ended;                         /* the recording: later calls are those of destructors */
static struct ensio_spool *parents_spool; /* in a forked child */
static struct ensio_held held_over_fork;
static uint64_t start_took_ns;

/* The traced program continues in any case. That there will be no trace is said once, on standard error. */
static void say_why_not(int error)
{
    char line[2 * ENSIO_PATH_ROOM];
    struct ensio_string message = ensio_string_in(line, sizeof line);
    ensio_settings.off = 1;
    if (ensio_settings.rank > 0)
        return;
    ensio_add(&message, "ensio: no I/O is recorded, because ");
    ensio_add(&message, ensio_spool_directory[0] ? ensio_spool_directory : "the current folder");
    if (error == -ENOTEMPTY) {
        ensio_add(&message, " holds an earlier run; set ENSIO_DIR to another folder, or ENSIO_USED_DIR=extend.\n");
    } else {
        ensio_add(&message, error == -EPERM ? " is not private to you (" : " cannot be written to (");
        ensio_add_error(&message, -error);
        ensio_add(&message, ensio_settings.spool_folder ? "); set ENSIO_SPOOL" : "); set ENSIO_DIR");
        ensio_add(&message, " to a folder of yours with free space, or ENSIO_DISABLE=1.\n");
    }
    ensio_tell(message.text, message.length);
}

int ensio_ensure_spool(void)
{
    if (ensio_spool)
        return 0;
    if (ensio_settings.off)
        return -ENOENT;
    const uint64_t now = ensio_clock_ns(CLOCK_MONOTONIC);
    int made = ensio_spool_make(ensio_calls);
    if (made != 0) {
        ensio_settings.off = 1;
        if (parents_spool)
            __atomic_fetch_add(&parents_spool->unrecorded_children, 1, __ATOMIC_RELAXED);
        return made;
    }
    ensio_descriptors_store_files();
    ensio_mappings_store_files();
    ensio_account_begin();
    start_took_ns += ensio_clock_ns(CLOCK_MONOTONIC) - now;
    if (ended) /* nothing will end it */
        ensio_spool_set_state(ENSIO_STATE_ENDED);
    return 0;
}

/* A child may rename folders. */
static void share(void)
{
    ensio_descriptors_shared();
    ensio_folders_forget();
}

static void before_fork(void)
{
    held_over_fork = ensio_lock();
}

static void after_fork_in_parent(void)
{
    share();
    ensio_unlock(held_over_fork);
}

static void after_fork_in_child(void)
{
    __atomic_store_n(&ensio_process->generation, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&ensio_process->facts, 0, __ATOMIC_RELAXED);
    ensio_unlock(held_over_fork);
}

static int64_t begin_first(void *unused)
{
    begun = 1;
    ensio_calls_resolve();
    ensio_settings_read();
    if (!ensio_settings.off && ensio_descriptors_begin() != 0) {
        ensio_settings.off = 1;
        ensio_say("no I/O is recorded of ", ensio_settings.program, ", for which too little memory is left.\n");
    }
#ifndef ENSIO_PRELOAD
    if (!ensio_settings.off && ensio_yields_to_peer())
        ensio_settings.off = 1;
#endif
    if (ensio_settings.off)
        return 0;
    ensio_budget_read();
    if (ensio_settings.layers)
        ensio_calls_choose(ensio_settings.layers);
    ensio_sites_choose(ensio_settings.callers, ensio_settings.python_lines);
    ensio_clock_choose();
    ensio_spool_begun = ensio_clock_read();
    ensio_tick_rate_begin();
    int joined = ensio_run_directory_join();
    if (joined != 0) {
        say_why_not(joined);
        return 0;
    }
    ensio_account_prepare(0);
    ensio_threads_begin();
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    return 0;
}

/* While AddressSanitizer initialises itself, it calls the C library, and no function that it intercepts may be called.
 * Our constructor runs after that. */
static int too_early(void)
{
#ifdef ENSIO_PRELOAD
    return &__asan_init && !constructed;
#else
    return 0;
#endif
}

int ensio_begin(void)
{
    if (!begun && too_early())
        return 0;
    if (!begun) {
        const uint64_t now = ensio_clock_ns(CLOCK_MONOTONIC);
        ensio_with_private_files(begin_first, NULL);
        ensio_banner_begin();
        start_took_ns = ensio_clock_ns(CLOCK_MONOTONIC) - now;
    } else if (!ensio_process->generation) { /* a forked child makes its spool when it has something to record */
        ensio_spool_begun = ensio_clock_read();
        parents_spool = ensio_spool;
        ended = 0;
        start_took_ns = 0;
        ensio_account_prepare(1);
        ensio_spool_forget();
        ensio_requests_forget();
        ensio_windows_forget();
        ensio_descriptors_shared();
    }
    if (!ensio_settings.off)
        __atomic_store_n(&ensio_process->generation, ensio_raw_pid(), __ATOMIC_RELAXED);
    return !ensio_settings.off;
}

void ensio_end(void)
{
    if (ensio_settings.off || !ensio_process->generation || !ensio_owns_memory())
        return;
    const uint64_t now = ensio_clock_ns(CLOCK_MONOTONIC);
    struct ensio_held held = ensio_lock();
    ended = 1;
    if (ensio_spool) {
        ensio_thread_settle(&ensio_thread);
        ensio_requests_end();
        ensio_windows_drain(ensio_thread.storing > 0);
        ensio_keep_longest_calls();
        ensio_banner_at_exit();
        const int unneeded =
            ensio_settings.job_file == ENSIO_JOB_FILE && ensio_thread_alone() && ensio_is_in_job_file();
        if ((unneeded && ensio_spool_remove() == 0) || ensio_process_file_write(now - start_took_ns)) {
            ensio_thread_leave();
        } else {
            ensio_surroundings_end();
            ensio_account_take();
            ensio_spool_end(ENSIO_STATE_ENDED);
        }
    }
    ensio_unlock(held);
}

void ensio_spawned(void)
{
    struct ensio_held held = ensio_lock();
    share();
    ensio_unlock(held);
}

int ensio_hand_over(void)
{
    if (!ensio_owns_memory())
        return 0;
    struct ensio_held held = ensio_lock();
    const int running = ensio_spool && ensio_spool->state == ENSIO_STATE_RUNNING;
    if (running) {
        ensio_surroundings_end();
        ensio_account_take();
        ensio_spool_end(ENSIO_STATE_REPLACED);
    }
    ensio_unlock(held);
    return running;
}

void ensio_take_back(void)
{
    if (ensio_owns_memory())
        __atomic_store_n(&ensio_spool->state, ENSIO_STATE_RUNNING, __ATOMIC_RELEASE);
}

void ensio_rights_end(void)
{
    struct ensio_held held = ensio_lock();
    if (ensio_owns_memory() && ensio_ensure_spool() == 0)
        ensio_spool_prepare_for_less();
    ensio_unlock(held);
}

void ensio_set_rank(int rank, int tasks)
{
    struct ensio_held held = ensio_lock();
    ensio_settings.rank = rank;
    ensio_settings.tasks = (uint32_t)tasks;
    if (ensio_spool)
        ensio_spool_set_rank(rank, (uint32_t)tasks);
    ensio_unlock(held);
}

__attribute__((constructor)) static void at_start(void)
{
#ifdef ENSIO_PRELOAD
    constructed = 1;
#endif
    int made = 0;
    ensio_private_files_start(1);
    if (ensio_ready(&ensio_thread)) {
        struct ensio_held held = ensio_lock();
        made = ensio_ensure_spool();
        ensio_unlock(held);
    }
    ensio_private_files_start(0);
    if (made != 0)
        say_why_not(made);
}

__attribute__((destructor)) static void at_exit(void)
{
    ensio_end();
}
