#include "state.h"

#include <core/rawsys.h>
#include <settings.h>

#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define WHY_ROOM 512

static int64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

int64_t shim_now_ns(const struct shim_state *state)
{
    return clock_ns() - state->origin_ns;
}

void shim_set_clock(struct shim_state *state)
{
    state->origin_ns = clock_ns();
    state->checked_ns = 0;
}

static uint64_t rounded(uint64_t bytes)
{
    return (bytes + 63) & ~UINT64_C(63);
}

/* Makes the model in zeroed memory. */
static int make_model(struct shim_state *state)
{
    struct pfs_settings settings;
    char problem[WHY_ROOM];
    if (pfs_settings_read(&settings, (const char *)state + state->settings_at, problem, sizeof problem) != 0)
        return -EINVAL;
    pfs_create(shim_model(state), &settings, &state->limits, state->seed);
    shim_set_clock(state);
    state->leader = -1;
    state->first_waiter = -1;
    state->due_ns = INT64_MAX;
    for (int32_t i = 0; i < SHIM_CALLERS; i++)
        if (state->slots[i].pid && i >= SHIM_RANKS)
            pfs_place(shim_model(state), i, state->slots[i].node);
    return 0;
}

static int make_mutex(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t kind;
    int error = pthread_mutexattr_init(&kind);
    if (!error)
        error = pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
    if (!error)
        error = pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    if (!error)
        error = pthread_mutex_init(mutex, &kind);
    return -error;
}

/* The path of the state in its folder; 0, or minus an errno. */
static int state_path(char *path, size_t room, const char *folder)
{
    const int length = snprintf(path, room, "%s/%s", folder, SHIM_STATE_FILE);
    return length < 0 || (size_t)length >= room ? -ENAMETOOLONG : 0;
}

int shim_state_make(const char *folder, const char *settings_text, uint64_t seed)
{
    char path[PATH_MAX], problem[WHY_ROOM];
    struct pfs_settings settings;
    int error = state_path(path, sizeof path, folder);
    if (error)
        return error;
    if (pfs_settings_read(&settings, settings_text, problem, sizeof problem) != 0)
        return -EINVAL;
    const struct pfs_limits limits = {.tasks = SHIM_CALLERS, .nodes = SHIM_CALLERS, .files = SHIM_FILES};
    const uint64_t settings_at = rounded(sizeof(struct shim_state));
    const uint64_t model_at = rounded(settings_at + strlen(settings_text) + 1);
    const uint64_t bytes = model_at + pfs_bytes(&settings, &limits);
    const int fd = ensio_raw_open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (fd < 0)
        return fd;
    error = (int)ENSIO_RAW(SYS_ftruncate, fd, bytes);
    struct shim_state *state = error ? NULL : ensio_raw_map(bytes, MAP_SHARED, fd, 0);
    ensio_raw_close(fd);
    if (!state)
        return error ? error : -ENOMEM;
    state->bytes = bytes;
    state->settings_at = settings_at;
    state->model_at = model_at;
    state->seed = seed;
    state->limits = limits;
    state->tasks_per_node = (int32_t)settings.tasks_per_node;
    memcpy((char *)state + settings_at, settings_text, strlen(settings_text) + 1);
    error = make_mutex(&state->mutex);
    if (!error)
        error = make_model(state);
    if (!error)
        __atomic_store_n(&state->magic, SHIM_MAGIC, __ATOMIC_RELEASE);
    ensio_raw_unmap(state, bytes);
    return error;
}

struct shim_state *shim_state_map(const char *folder, int *error)
{
    char path[PATH_MAX];
    struct stat found = {0};
    *error = -state_path(path, sizeof path, folder);
    if (*error)
        return NULL;
    const int fd = ensio_raw_open(path, O_RDWR, 0);
    *error = fd < 0 ? -fd : -(int)ENSIO_RAW(SYS_fstat, fd, &found);
    struct shim_state *state = NULL;
    if (!*error && (size_t)found.st_size > sizeof *state)
        state = ensio_raw_map((uint64_t)found.st_size, MAP_SHARED, fd, 0);
    if (fd >= 0)
        ensio_raw_close(fd);
    if (!*error && (!state || state->magic != SHIM_MAGIC || state->bytes != (uint64_t)found.st_size)) {
        if (state)
            ensio_raw_unmap(state, (uint64_t)found.st_size);
        *error = EPROTO;
        return NULL;
    }
    return state;
}

/* The last holder was killed while it changed the state, which is therefore made anew. */
static void make_new(struct shim_state *state)
{
    memset(shim_model(state), 0, state->bytes - state->model_at);
    make_model(state);
    state->counts.restarts++;
    for (int32_t i = 0; i < SHIM_CALLERS; i++) {
        struct shim_slot *slot = &state->slots[i];
        slot->waits = 0;
        if (SHIM_STATE_OF(slot->word) != SHIM_UNDER_WAY)
            continue;
        state->counts.let_go++;
        slot->sequence++;
        __atomic_store_n(&slot->word, (slot->word + SHIM_TICK) & ~3U, __ATOMIC_RELEASE);
        syscall(SYS_futex, &slot->word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    }
    state->changing = 0;
}

struct shim_lock shim_lock(struct shim_state *state)
{
    struct shim_lock held;
    sigset_t all;
    memset(&all, 0xff, sizeof all);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &held.signals, _NSIG / 8);
    if (pthread_mutex_lock(&state->mutex) == EOWNERDEAD) {
        pthread_mutex_consistent(&state->mutex);
        if (state->changing)
            make_new(state);
    }
    state->changing = 1;
    return held;
}

void shim_unlock(struct shim_state *state, struct shim_lock held)
{
    __atomic_store_n(&state->changing, 0, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&state->mutex);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &held.signals, NULL, _NSIG / 8);
}
