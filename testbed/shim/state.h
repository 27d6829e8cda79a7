/* state.h: the model that all processes of a machine share, in a file that they map.
 *
 * The file holds a head, a slot for each caller, the text of the settings, and the model's block. The lock protects
 * everything but the words of slots. It is robust: if a holder is killed, the next one makes a new model, because the
 * state may be inconsistent; delayed calls are released, and this is counted. */
#ifndef ENSIO_SHIM_STATE_H
#define ENSIO_SHIM_STATE_H

#include <ensio/bins.h>
#include <pfsmodel.h>

#include <pthread.h>
#include <signal.h>
#include <stdint.h>

#define SHIM_MAGIC UINT64_C(0x327366706f69736e)
#define SHIM_STATE_FILE "state"
#define SHIM_RANKS 2048   /* slots reserved for ranks, by number */
#define SHIM_CALLERS 4096 /* these, and those of threads and of processes without a rank */
#define SHIM_FILES 65536

/* Flags in the lower bits of a caller's word. The rest of it counts up whenever the caller must check its state. */
enum { SHIM_IDLE, SHIM_UNDER_WAY, SHIM_DONE };
#define SHIM_STATE_OF(word) ((word)&3U)
#define SHIM_TICK 4U

struct shim_slot {
    uint32_t word;             /* a futex */
    int32_t pid, tid;          /* 0: the slot is free */
    int32_t ordinal;           /* task number of its process if ranks are unknown; else -1 */
    uint64_t sequence;         /* of its calls */
    int64_t began_ns, done_ns; /* by the model's clock */
    int32_t next, previous;    /* in the list of waiting callers; -1: end of the list */
    int32_t waits;
    int32_t node;
};

/* Counts of all calls on files under the model. */
struct shim_counts {
    uint64_t calls; /* begun in the model */
    uint64_t bytes_read, bytes_written;
    uint64_t longer;       /* took longer in reality than in the model */
    uint64_t longer_ns;    /* total excess */
    uint64_t nested;       /* made in a signal handler of a delayed thread, and not delayed */
    uint64_t asynchronous; /* requests of POSIX asynchronous I/O, which are not delayed */
    uint64_t without_slot; /* from callers beyond the number of slots, and not delayed */
    uint64_t let_go;       /* released before completion, because the model was made anew or had lost them */
    uint64_t restarts;     /* the model was made anew */
    uint64_t gone;         /* callers that ended */
    uint64_t model_ns;     /* sum of the model's durations */
};

struct shim_state {
    uint64_t magic, bytes, settings_at, model_at, seed;
    struct pfs_limits limits;
    int32_t tasks_per_node;
    int32_t changing;   /* the holder of the lock is changing the model or the list */
    int64_t origin_ns;  /* of the model's clock, on CLOCK_MONOTONIC */
    int64_t due_ns;     /* until when the leader waits */
    int64_t checked_ns; /* when callers that have ended were last looked for */
    int32_t leader;     /* the waiting caller that advances the model; -1: none */
    int32_t first_waiter;
    pthread_mutex_t mutex;
    struct shim_counts counts;
    uint64_t late[ENSIO_BIN_COUNT]; /* histogram of the delays by which calls returned after the model's time */
    struct shim_slot slots[SHIM_CALLERS];
};

struct shim_lock {
    sigset_t signals;
};

static inline struct pfs *shim_model(struct shim_state *state)
{
    return (struct pfs *)(void *)((char *)state + state->model_at);
}

/* Makes the state in a file of the folder. 0, or minus an errno. */
int shim_state_make(const char *folder, const char *settings_text, uint64_t seed);

/* Maps the state of a folder. NULL: it is missing or of another version; `error` is an errno. */
struct shim_state *shim_state_map(const char *folder, int *error);

/* Signals are blocked between these, because a handler that makes a call would never get the lock. */
struct shim_lock shim_lock(struct shim_state *state);
void shim_unlock(struct shim_state *state, struct shim_lock held);

/* Starts the model's clock now. No call has begun in the model yet. */
void shim_set_clock(struct shim_state *state);

/* The current time of the model's clock. */
int64_t shim_now_ns(const struct shim_state *state);

#endif
