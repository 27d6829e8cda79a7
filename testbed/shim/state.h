/* state.h: the model that all processes of a machine share, in a file that they map.
 *
 * The file holds a head, a slot for each caller, the text of the settings, and the model's one block. Whoever looks at
 * more than a slot's word holds the lock. The lock is robust: where a holder is killed, the next one makes the model
 * new, for nobody knows what it was just doing to it; the calls that were held back are let go, and it is counted.
 */
#ifndef ENSIO_SHIM_STATE_H
#define ENSIO_SHIM_STATE_H

#include <ensio/bins.h>
#include <pfsmodel.h>

#include <pthread.h>
#include <signal.h>
#include <stdint.h>

#define SHIM_MAGIC UINT64_C(0x327366706f69736e)
#define SHIM_STATE_FILE "state"
#define SHIM_RANKS 2048   /* slots that are the ranks' own, by their number */
#define SHIM_CALLERS 4096 /* these, and those of threads and of processes that are no ranks */
#define SHIM_FILES 65536

/* What a caller's word says, in its lower bits. The rest of it counts up whenever somebody wants the caller to look
 * again. */
enum { SHIM_IDLE, SHIM_UNDER_WAY, SHIM_DONE };
#define SHIM_STATE_OF(word) ((word)&3U)
#define SHIM_TICK 4U

struct shim_slot {
    uint32_t word;             /* a futex */
    int32_t pid, tid;          /* 0: the slot is free */
    int32_t ordinal;           /* which task its process is, where MPI does not say so; else -1 */
    uint64_t sequence;         /* of its calls */
    int64_t began_ns, done_ns; /* by the model's clock */
    int32_t next, previous;    /* in the list of those who sleep; -1: at its end */
    int32_t waits;
    int32_t node;
};

/* What is counted, of all calls on files under the model. */
struct shim_counts {
    uint64_t calls; /* begun in the model */
    uint64_t bytes_read, bytes_written;
    uint64_t longer;       /* took longer for real than in the model */
    uint64_t longer_ns;    /* by how much, all together */
    uint64_t nested;       /* were made in a signal handler while the thread was held back: not held back themselves */
    uint64_t asynchronous; /* requests of POSIX asynchronous I/O: not held back */
    uint64_t without_slot; /* came from more callers than there are slots: not held back */
    uint64_t let_go;       /* were let go before they were complete, because the model was made new or had lost them */
    uint64_t restarts;     /* the model was made new */
    uint64_t gone;         /* callers that ended */
    uint64_t model_ns;     /* the model's durations, all together */
};

struct shim_state {
    uint64_t magic, bytes, settings_at, model_at, seed;
    struct pfs_limits limits;
    int32_t tasks_per_node;
    int32_t changing;   /* the holder of the lock is at work on the model or on the list */
    int64_t origin_ns;  /* of the model's clock, on CLOCK_MONOTONIC */
    int64_t due_ns;     /* until when the leader waits */
    int64_t checked_ns; /* when somebody last looked for callers that are gone */
    int32_t leader;     /* who of those who sleep brings the model forward; -1: nobody */
    int32_t first_waiter;
    pthread_mutex_t mutex;
    struct shim_counts counts;
    uint64_t late[ENSIO_BIN_COUNT]; /* how long after the model's time calls came back: durations by bin */
    struct shim_slot slots[SHIM_CALLERS];
};

struct shim_lock {
    sigset_t signals;
};

static inline struct pfs *shim_model(struct shim_state *state)
{
    return (struct pfs *)(void *)((char *)state + state->model_at);
}

/* Makes the state in a folder, which then lies in its file. 0, or minus an errno. */
int shim_state_make(const char *folder, const char *settings_text, uint64_t seed);

/* Maps the state of a folder. NULL: there is none, or of another version; `error` says why as an errno. */
struct shim_state *shim_state_map(const char *folder, int *error);

/* No signal is handled between these: a handler that makes a call itself would wait for the lock for ever. */
struct shim_lock shim_lock(struct shim_state *state);
void shim_unlock(struct shim_state *state, struct shim_lock held);

/* The model's clock begins now. Nothing has happened in the model yet. */
void shim_set_clock(struct shim_state *state);

/* Now, by the model's clock. */
int64_t shim_now_ns(const struct shim_state *state);

#endif
