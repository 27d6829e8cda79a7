#include "delay.h"

#include "callers.h"
#include "waiters.h"

#include <core/rawsys.h>

#include <limits.h>
#include <linux/futex.h>
#include <sys/prctl.h>
#include <time.h>

#define PATIENCE_NS INT64_C(50000000) /* how long followers sleep before they check the leader */
#define OVERDUE_NS INT64_C(2000000)   /* a leader that is later than this is assumed to be gone */
#define LARGE_BYTES 262144            /* the real call takes so long that the leader should know of it before */
#define MOST_WAKES 64

/* Slots to wake after the lock is released. */
struct wakes {
    int32_t count;
    int32_t slots[MOST_WAKES];
};

static void wake(uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void wake_later(struct shim_state *state, struct wakes *wakes, int32_t i)
{
    if (wakes->count < MOST_WAKES)
        wakes->slots[wakes->count++] = i;
    else
        wake(&state->slots[i].word);
}

static void wake_all(struct shim_state *state, const struct wakes *wakes)
{
    for (int32_t i = 0; i < wakes->count; i++)
        wake(&state->slots[wakes->slots[i]].word);
}

static void set_word(struct shim_slot *slot, uint32_t to)
{
    __atomic_store_n(&slot->word, ((slot->word + SHIM_TICK) & ~3U) | to, __ATOMIC_RELEASE);
}

/* Advances the model to `now_ns`, and notifies callers whose calls are complete. */
static void deliver(struct shim_state *state, int64_t now_ns, struct wakes *wakes)
{
    struct pfs *model = shim_model(state);
    int64_t done_ns;
    pfs_advance(model, now_ns);
    for (int32_t i; (i = pfs_take(model, &done_ns)) >= 0;) {
        struct shim_slot *slot = &state->slots[i];
        if (SHIM_STATE_OF(slot->word) != SHIM_UNDER_WAY)
            continue;
        if (state->leader == i)
            state->leader = -1;
        const int waits = slot->waits;
        shim_waiter_remove(state, i);
        slot->done_ns = done_ns;
        set_word(slot, SHIM_DONE);
        if (waits)
            wake_later(state, wakes, i);
    }
}

/* Makes a waiting caller the leader if there is none. */
static void find_leader(struct shim_state *state, struct wakes *wakes)
{
    const int32_t i = state->first_waiter;
    if (state->leader >= 0 || i < 0)
        return;
    state->leader = i;
    state->due_ns = pfs_next_ns(shim_model(state));
    set_word(&state->slots[i], SHIM_UNDER_WAY);
    wake_later(state, wakes, i);
}

/* Whether this is a signal handler of a delayed thread. (If a handler left the wait by a long jump, this ends when the
 * model completes the abandoned call.) */
static int is_nested(struct shim_state *state, int32_t i)
{
    if (SHIM_STATE_OF(state->slots[i].word) != SHIM_UNDER_WAY)
        return 0;
    state->counts.nested++;
    return 1;
}

struct shim_ticket shim_begin(struct shim_state *state, struct shim_caller *caller, const struct shim_call *call)
{
    const int error = errno;
    struct shim_ticket ticket = {.slot = -1};
    struct wakes wakes = {.count = 0};
    struct shim_lock held = shim_lock(state);
    /* The model's clock begins with the first call, so that its internal events are the same each time. */
    if (!state->counts.calls)
        shim_set_clock(state);
    const int64_t now_ns = shim_now_ns(state);
    shim_look_for_gone(state, now_ns);
    deliver(state, now_ns, &wakes);
    const int32_t i = shim_slot_of(state, caller);
    if (i < 0) {
        state->counts.without_slot++;
    } else if (!is_nested(state, i)) {
        struct pfs *model = shim_model(state);
        struct shim_slot *slot = &state->slots[i];
        const struct pfs_call begun = {
            .task = i,
            .file = call->key ? pfs_file(model, call->key) : -1,
            .offset = call->offset,
            .bytes = call->bytes,
            .operation = call->operation,
            .through = call->through,
        };
        slot->began_ns = now_ns;
        set_word(slot, SHIM_UNDER_WAY);
        ticket.slot = i;
        ticket.sequence = ++slot->sequence;
        state->counts.calls++;
        state->counts.bytes_read += call->operation == PFS_READ ? (uint64_t)call->bytes : 0;
        state->counts.bytes_written += call->operation == PFS_WRITE ? (uint64_t)call->bytes : 0;
        pfs_begin(model, now_ns, &begun);
        const int64_t next_ns = pfs_next_ns(model);
        if (call->bytes >= LARGE_BYTES && state->leader >= 0 && next_ns < state->due_ns) {
            state->due_ns = next_ns;
            set_word(&state->slots[state->leader], SHIM_UNDER_WAY);
            wake_later(state, &wakes, state->leader);
        }
    }
    find_leader(state, &wakes);
    shim_unlock(state, held);
    wake_all(state, &wakes);
    errno = error;
    return ticket;
}

/* Sleeps until the word changes or the time comes. `exactly`: without the 50 us of timer slack that the kernel adds. */
static void sleep_until(struct shim_state *state, uint32_t *word, uint32_t value, int64_t until_ns, int exactly)
{
    const int64_t at_ns = until_ns + state->origin_ns;
    const struct timespec until = {.tv_sec = at_ns / 1000000000, .tv_nsec = at_ns % 1000000000};
    const long slack_ns = exactly ? syscall(SYS_prctl, PR_GET_TIMERSLACK, 0, 0, 0, 0) : 0;
    if (slack_ns > 0)
        syscall(SYS_prctl, PR_SET_TIMERSLACK, 1, 0, 0, 0);
    syscall(SYS_futex, word, FUTEX_WAIT_BITSET, value, &until, NULL, FUTEX_BITSET_MATCH_ANY);
    if (slack_ns > 0)
        syscall(SYS_prctl, PR_SET_TIMERSLACK, slack_ns, 0, 0, 0);
}

/* Counts the delays, which show how well the shim keeps the model's time. */
static void count(struct shim_state *state, const struct shim_slot *slot, int64_t real_end_ns, int64_t now_ns)
{
    struct shim_counts *counts = &state->counts;
    __atomic_fetch_add(&counts->model_ns, (uint64_t)(slot->done_ns - slot->began_ns), __ATOMIC_RELAXED);
    if (real_end_ns > slot->done_ns) {
        __atomic_fetch_add(&counts->longer, 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&counts->longer_ns, (uint64_t)(real_end_ns - slot->done_ns), __ATOMIC_RELAXED);
    } else {
        __atomic_fetch_add(&state->late[ensio_bin((uint64_t)(now_ns - slot->done_ns))], 1, __ATOMIC_RELAXED);
    }
}

/* Checks the model once. Returns the time to sleep until, and the value of the word; 0: there is nothing to wait
 * for. */
static int64_t look(struct shim_state *state, struct shim_ticket ticket, uint32_t *value, int *leads)
{
    struct shim_slot *slot = &state->slots[ticket.slot];
    struct wakes wakes = {.count = 0};
    int64_t until_ns = 0;
    struct shim_lock held = shim_lock(state);
    const int64_t now_ns = shim_now_ns(state);
    *leads = 0;
    shim_look_for_gone(state, now_ns);
    if (slot->sequence == ticket.sequence) {
        shim_waiter_remove(state, ticket.slot);
        deliver(state, now_ns, &wakes);
    }
    if (slot->sequence == ticket.sequence && SHIM_STATE_OF(slot->word) == SHIM_UNDER_WAY) {
        const int64_t next_ns = pfs_next_ns(shim_model(state));
        if (next_ns == INT64_MAX) { /* the model has lost the call: nothing may wait without end */
            pfs_leave(shim_model(state), ticket.slot);
            state->counts.let_go++;
            slot->sequence++;
            set_word(slot, SHIM_IDLE);
            if (state->leader == ticket.slot)
                state->leader = -1;
        } else {
            if (state->leader >= 0 && (next_ns < state->due_ns || now_ns > state->due_ns + OVERDUE_NS) &&
                state->leader != ticket.slot) {
                shim_waiter_add(state, state->leader);
                state->leader = -1;
            }
            if (state->leader < 0)
                state->leader = ticket.slot;
            *leads = state->leader == ticket.slot;
            if (*leads)
                state->due_ns = next_ns;
            else
                shim_waiter_add(state, ticket.slot);
            until_ns = *leads ? next_ns : now_ns + PATIENCE_NS + ticket.slot % 16 * (PATIENCE_NS / 64);
            *value = slot->word;
        }
    }
    find_leader(state, &wakes);
    shim_unlock(state, held);
    wake_all(state, &wakes);
    return until_ns;
}

void shim_wait(struct shim_state *state, struct shim_ticket ticket)
{
    if (ticket.slot < 0)
        return;
    const int error = errno;
    struct shim_slot *slot = &state->slots[ticket.slot];
    const int64_t real_end_ns = shim_now_ns(state);
    for (;;) {
        uint32_t value = __atomic_load_n(&slot->word, __ATOMIC_ACQUIRE);
        if (SHIM_STATE_OF(value) == SHIM_DONE && slot->sequence == ticket.sequence)
            break;
        int leads;
        const int64_t until_ns = look(state, ticket, &value, &leads);
        if (until_ns) {
            sleep_until(state, &slot->word, value, until_ns, leads);
        } else if (slot->sequence != ticket.sequence) {
            errno = error;
            return;
        }
    }
    count(state, slot, real_end_ns, shim_now_ns(state));
    __atomic_store_n(&slot->word, slot->word & ~3U, __ATOMIC_RELEASE);
    errno = error;
}
