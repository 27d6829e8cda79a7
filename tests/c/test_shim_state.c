/* The state that processes under the model share, with processes that are killed at the worst moments. */
#include <delay.h>

#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* One target of 100 MB/s, nothing else, no noise: 1 MB takes 10 ms. */
static const char settings[] =
    "targets 1\nstripe_count 1\ntarget_MB_per_s 100\nstream_MB_per_s 1e6\nlink_MB_per_s 1e6\n"
    "absorb_MB_per_s 1e6\nlink_latency_us 0\nrequest_ms 0\nrequest_noise 0\ncall_noise 0\n"
    "cache_MiB 0\npage_cache_MiB 0\nreadahead_KiB 0\ntasks_per_node 1\n";

static char folder[] = "/tmp/ensio-shim-XXXXXX";

static struct shim_state *fresh(void)
{
    int error;
    char path[sizeof folder + 8];
    snprintf(path, sizeof path, "%s/%s", folder, SHIM_STATE_FILE);
    unlink(path);
    CHECK(shim_state_make(folder, settings, 1) == 0);
    struct shim_state *state = shim_state_map(folder, &error);
    CHECK(state != NULL);
    return state;
}

static struct shim_ticket begin_read(struct shim_state *state, int rank, int64_t bytes)
{
    struct shim_caller caller = {.pid = getpid(), .tid = getpid(), .rank = rank, .slot = rank};
    const struct shim_call call = {.operation = PFS_READ, .key = 1, .bytes = bytes};
    return shim_begin(state, &caller, &call);
}

static pid_t child_that(void (*does)(struct shim_state *), struct shim_state *state)
{
    const pid_t child = fork();
    if (child == 0) {
        does(state);
        _exit(0);
    }
    return child;
}

static void end_of(pid_t child)
{
    int status;
    CHECK(waitpid(child, &status, 0) == child);
}

static void dies_with_lock(struct shim_state *state)
{
    shim_lock(state);
    raise(SIGKILL);
}

static void waits_long(struct shim_state *state)
{
    shim_wait(state, begin_read(state, 1, 100000000000));
}

static void waits_a_little(struct shim_state *state)
{
    shim_wait(state, begin_read(state, 2, 10000000));
}

static void a_call_takes_what_the_model_says(void)
{
    struct shim_state *state = fresh();
    const struct shim_ticket ticket = begin_read(state, 0, 10000000);
    shim_wait(state, ticket);
    CHECK(state->counts.calls == 1);
    CHECK(llabs((long long)state->counts.model_ns - 100000000) < 1000);
    CHECK(shim_now_ns(state) >= 100000000);
}

static void two_share_a_target(void)
{
    struct shim_state *state = fresh();
    const struct shim_ticket one = begin_read(state, 0, 10000000);
    const struct shim_ticket other = begin_read(state, 1, 10000000);
    shim_wait(state, one);
    shim_wait(state, other);
    CHECK(state->counts.calls == 2);
    /* Both at half the rate, except between their beginnings. */
    CHECK(state->counts.model_ns > 300000000 && state->counts.model_ns <= 400001000);
    CHECK(shim_now_ns(state) >= 200000000);
}

static void a_holder_that_is_killed_is_survived(void)
{
    struct shim_state *state = fresh();
    const pid_t waiting = child_that(waits_long, state);
    while (__atomic_load_n(&state->counts.calls, __ATOMIC_RELAXED) == 0)
        usleep(1000);
    end_of(child_that(dies_with_lock, state));
    shim_wait(state, begin_read(state, 0, 1000000));
    CHECK(state->counts.restarts == 1);
    CHECK(state->counts.let_go == 1);
    end_of(waiting); /* its 1,000 s are over */
}

static void a_leader_that_is_killed_is_replaced(void)
{
    struct shim_state *state = fresh();
    const pid_t leader = child_that(waits_long, state);
    while (__atomic_load_n(&state->leader, __ATOMIC_RELAXED) != 1)
        usleep(1000);
    const pid_t other = child_that(waits_a_little, state);
    while (__atomic_load_n(&state->counts.calls, __ATOMIC_RELAXED) < 2)
        usleep(1000);
    kill(leader, SIGKILL);
    end_of(leader);
    end_of(other);
    CHECK(state->counts.restarts == 0);
    shim_wait(state, begin_read(state, 0, 30000000)); /* long enough for a search for callers that have ended */
    CHECK(state->counts.gone >= 1);
    const struct shim_slot *slot = &state->slots[1];
    CHECK(slot->pid == 0);
}

static void many_processes_lose_no_call(void)
{
    enum { PROCESSES = 32, CALLS = 50 };
    struct shim_state *state = fresh();
    pid_t children[PROCESSES];
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            for (int j = 0; j < CALLS; j++)
                shim_wait(state, begin_read(state, i, 10000));
            _exit(0);
        }
    }
    for (int i = 0; i < PROCESSES; i++)
        end_of(children[i]);
    CHECK(state->counts.calls == PROCESSES * CALLS);
    CHECK(state->counts.let_go == 0 && state->counts.restarts == 0 && state->counts.nested == 0);
    CHECK(state->counts.bytes_read == (uint64_t)PROCESSES * CALLS * 10000);
    /* The target moves 100 MB/s in total. */
    CHECK(shim_now_ns(state) >= INT64_C(10) * PROCESSES * CALLS * 10000);
}

int main(void)
{
    CHECK(mkdtemp(folder) != NULL);
    a_call_takes_what_the_model_says();
    two_share_a_target();
    a_holder_that_is_killed_is_survived();
    a_leader_that_is_killed_is_replaced();
    many_processes_lose_no_call();
    char path[sizeof folder + 8];
    snprintf(path, sizeof path, "%s/%s", folder, SHIM_STATE_FILE);
    unlink(path);
    rmdir(folder);
    return 0;
}
