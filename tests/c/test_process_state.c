/* Whose state lies in memory: the wiped page in children of all kinds, the lock across threads and forks. */
#include "recorder_world.h"

#include <core/lock.h>
#include <core/rawsys.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void wait_for(pid_t child)
{
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

/* Before the page exists, no process owns the state. Mapping it again changes nothing. */
static void page(void)
{
    struct ensio_process *before = ensio_process;
    CHECK(before->generation == 0 && !ensio_owns_memory());
    ensio_process_map();
    struct ensio_process *mapped = ensio_process;
    CHECK(mapped != before && mapped->generation == 0);
    ensio_process_map();
    CHECK(ensio_process == mapped && ensio_begin() && ensio_owns_memory());
    errno = 55;
    CHECK(ensio_owns_memory() && errno == 55);
}

static int is_wiped(void)
{
    return ensio_process->generation == 0 && ensio_process->lock == 0 && !ensio_owns_memory();
}

static int run_wiped(void *unused)
{
    (void)unused;
    return !is_wiped();
}

/* A child that has its own memory finds 0, whatever made it; no fork handler ran in the last two. */
static void children(void)
{
    static char stack[65536];
    world_begin(ENSIO_TRACE);
    pid_t child = fork();
    if (child == 0)
        _exit(!is_wiped());
    wait_for(child);
    child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0);
    if (child == 0)
        syscall(SYS_exit_group, !is_wiped());
    wait_for(child);
    wait_for(clone(run_wiped, stack + sizeof stack, SIGCHLD, NULL));
    CHECK(ensio_owns_memory());
}

static volatile int seen_by_child;

static int look_from_child(void *unused)
{
    (void)unused;
    seen_by_child = ensio_owns_memory();
    return 0;
}

/* Between vfork and exec the memory is the parent's, and the child does not own it. */
static void shared_memory(void)
{
    static char stack[65536];
    world_begin(ENSIO_TRACE);
    seen_by_child = 9;
    wait_for(clone(look_from_child, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL));
    CHECK(seen_by_child == 0 && ensio_owns_memory());
}

/* The lock counts how often it is held, keeps errno, and blocks signals until the last release. */
static void nested_lock(void)
{
    sigset_t now;
    world_begin(ENSIO_TRACE);
    errno = 66;
    struct ensio_held first = ensio_lock(), second = ensio_lock();
    CHECK(ensio_locked() && pthread_sigmask(SIG_SETMASK, NULL, &now) == 0);
    CHECK(sigismember(&now, SIGALRM) && sigismember(&now, SIGSEGV));
    errno = 1;
    ensio_unlock(second);
    CHECK(ensio_locked() && errno == 66 && ensio_process->lock != 0);
    CHECK(pthread_sigmask(SIG_SETMASK, NULL, &now) == 0 && sigismember(&now, SIGALRM));
    ensio_unlock(first);
    CHECK(!ensio_locked() && errno == 66 && ensio_process->lock == 0);
    CHECK(pthread_sigmask(SIG_SETMASK, NULL, &now) == 0 && !sigismember(&now, SIGALRM));
}

#define ROUNDS 30000
static volatile uint64_t counter;

static void *count_up(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        struct ensio_held held = ensio_lock();
        const uint64_t seen = counter;
        if (i % 1000 == 0)
            sched_yield(); /* others come to wait */
        counter = seen + 1;
        ensio_unlock(held);
    }
    return unused;
}

static void threads_at_the_lock(void)
{
    pthread_t threads[3];
    world_begin(ENSIO_TRACE);
    for (int i = 0; i < 3; i++)
        CHECK(pthread_create(&threads[i], NULL, count_up, NULL) == 0);
    count_up(NULL);
    for (int i = 0; i < 3; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(counter == 4 * ROUNDS && ensio_process->lock == 0);
}

static volatile int stop, is_held;

static void *hold_again_and_again(void *unused)
{
    while (!stop) {
        struct ensio_held held = ensio_lock();
        is_held = 1;
        sched_yield();
        is_held = 0;
        ensio_unlock(held);
    }
    return unused;
}

/* A fork while another thread holds the lock: the child can take it, and the parent's is as it was. */
static void fork_while_locked(void)
{
    pthread_t thread;
    int held_at_fork = 0;
    world_begin(ENSIO_TRACE);
    CHECK(pthread_create(&thread, NULL, hold_again_and_again, NULL) == 0);
    for (int i = 0; i < 1000 && held_at_fork < 20; i++) {
        while (!is_held)
            sched_yield();
        const pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0);
        if (child == 0) {
            const int was_held = is_held;
            struct ensio_held held = ensio_lock();
            ensio_unlock(held);
            syscall(SYS_exit_group, was_held ? 1 : 0);
        }
        int status;
        CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
        held_at_fork += WEXITSTATUS(status);
    }
    stop = 1;
    CHECK(pthread_join(thread, NULL) == 0 && held_at_fork > 0);
}

/* A jump out of a call leaves its depth; the next call further up begins anew. Flags are kept by calls inside. */
static void depth(void)
{
    struct ensio_thread thread = {0};
    uintptr_t frames[6] = {0}; /* each followed by a return address */
    CHECK(ensio_enter(&thread, &frames[2]) == 0 && thread.depth == 1);
    thread.depth |= ENSIO_CARRIES_WRITE;
    CHECK(ensio_enter(&thread, &frames[1]) == (1 | ENSIO_CARRIES_WRITE));
    CHECK(thread.depth == (2 | ENSIO_CARRIES_WRITE) && ensio_carried(thread.depth) == ENSIO_CARRIED_WRITE);
    CHECK(ensio_enter(&thread, &frames[3]) == 0 && thread.depth == 1 && thread.outermost == (char *)&frames[3]);
    CHECK(ensio_enter(&thread, &frames[3]) == 0 && thread.depth == 1); /* the same frame: not inside itself */
    CHECK(ensio_carried(ENSIO_IN_MPI | 1) == 0);
    ensio_io_pending = 1ULL << 32;
    CHECK(ensio_carried(ENSIO_IN_MPI | 1) == ENSIO_CARRIED_WRITE && ensio_carried(1) == 0);
    ensio_io_pending |= 1;
    CHECK(ensio_carried(ENSIO_IN_MPI | 1) == (ENSIO_CARRIED_READ | ENSIO_CARRIED_WRITE));
}

int main(void)
{
    CASE(page);
    CASE(children);
    CASE(shared_memory);
    CASE(nested_lock);
    CASE(threads_at_the_lock);
    CASE(fork_while_locked);
    CASE(depth);
    return 0;
}
