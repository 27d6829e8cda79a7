/* recorder.h: the state of the recorder, and the path that every recorded call takes.
 *
 * What a wrapper does is: ensio_ready, the real call between two readings of the clock, ensio_store. Nothing on that
 * path locks, allocates, makes a system call or touches errno. All else (a thread's first call, a full window, an
 * unknown descriptor, opening and closing) is a slow path: signals blocked, one lock, errno put back.
 */
#ifndef ENSIO_CORE_RECORDER_H
#define ENSIO_CORE_RECORDER_H

#include <ensio/event.h>
#include <stddef.h>
#include <stdint.h>

#define ENSIO_LIKELY(x) __builtin_expect(!!(x), 1)
#define ENSIO_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* The process to which the recorder's state belongs. It lies in a page that the kernel wipes in a forked child, so that
 * a child, however it came about, finds 0 here and starts a recording of its own. */
struct ensio_process {
    uint32_t generation; /* the pid; 0: nothing is recorded (yet, or at all) in this process */
    uint32_t lock;       /* of lock.h: a child must not wait for a thread that it does not have */
};
extern struct ensio_process *ensio_process;

struct ensio_thread {
    struct ensio_event *slots; /* of the thread's window */
    uint32_t next;             /* the next slot to claim; at or over capacity: the window is full */
    uint32_t capacity;         /* slots to fill before the next look at the window: a part of it, see windows.c */
    uint32_t generation;       /* of the process for which the members above were set */
    uint32_t depth;            /* recorded calls that this thread is in, and bits: ENSIO_CARRIES_READ ... */
    char *outermost;           /* stack frame of the outermost of them */
    uint32_t storing;          /* events that this thread is in the middle of storing: over 1 only in signal handlers */
    uint32_t number;           /* in the process, from 0 */
    uint32_t excluded_calls;   /* not yet added to the spool's head */
    uint64_t retry_due;        /* ticks after which a window is asked for again where there was none to have */
    uint32_t suppressed;       /* in calls whose inner calls are left out */
    uint64_t clock_due;        /* ticks after which the spool's clock reading is to be renewed */
    struct ensio_window *window;
    struct ensio_window *retired; /* an older window that an interrupted store may still be writing to */
    struct ensio_cursor *cursor;  /* on the way of its events into the summary */
};
extern _Thread_local struct ensio_thread ensio_thread;

/* Bits of a thread's depth: it is in a call whose own event counts the bytes that are read, or written, by the calls
 * inside. They lie above the depth's eight bits as an event's flags lie behind its depth. */
#define ENSIO_CARRIES_READ (ENSIO_CARRIED_READ << 8)
#define ENSIO_CARRIES_WRITE (ENSIO_CARRIED_WRITE << 8)
#define ENSIO_IN_MPI (4 << 8) /* in an MPI call, which may drive on non-blocking I/O of any thread */

/* Non-blocking I/O of MPI that is under way: the number of reads in the lower half, that of writes in the upper. */
extern uint64_t ensio_io_pending;

/* The flags of an event that is stored at this depth. */
static inline uint8_t ensio_carried(uint32_t depth)
{
    uint32_t carried = depth >> 8;
    if (ENSIO_UNLIKELY(depth & ENSIO_IN_MPI)) {
        const uint64_t pending = __atomic_load_n(&ensio_io_pending, __ATOMIC_RELAXED);
        carried |= ((uint32_t)pending ? ENSIO_CARRIED_READ : 0) | (pending >> 32 ? ENSIO_CARRIED_WRITE : 0);
    }
    return (uint8_t)(carried & (ENSIO_CARRIED_READ | ENSIO_CARRIED_WRITE));
}

/* By the number of a call: 1 where its layer is not to be recorded (ENSIO_LAYERS). */
#define ENSIO_CALLS 256
extern uint8_t ensio_unwanted_calls[ENSIO_CALLS];

/* Maps the page that says to which process the state belongs, if that was not done yet. */
void ensio_process_map(void);

/* Whether this is the process that the state in memory belongs to: not so between vfork and exec. */
int ensio_owns_memory(void);

/* Begins in this process, if it is one that is recorded. Returns whether it is. The caller holds the lock. This
 * function and the next are in process/lifecycle.c: what is below calls them when the first call or file of a process
 * comes. */
int ensio_begin(void);

/* Makes a spool for this process, if it has none: 0, or minus an errno. The caller holds the lock. */
int ensio_ensure_spool(void);

/* Slow paths. */
int ensio_prepare(struct ensio_thread *thread);
struct ensio_event *ensio_next_window(struct ensio_thread *thread);
void ensio_renew_clock(struct ensio_thread *thread, uint64_t now);

/* Whether calls of this thread are recorded; makes the thread ready at its first call. */
static inline int ensio_ready(struct ensio_thread *thread)
{
    return ENSIO_LIKELY(thread->generation == __atomic_load_n(&ensio_process->generation, __ATOMIC_RELAXED)) ||
           ensio_prepare(thread);
}

/* Notes that this thread is in one call more, and returns in how many it was, with the bits; that is what to put back.
 * A call that a signal handler has jumped out of never comes back to note its end: its frame lies below that of the
 * next call, for stacks grow downwards. */
static inline uint32_t ensio_enter(struct ensio_thread *thread, void *frame)
{
    uint32_t depth = thread->depth;
    if (ENSIO_LIKELY(depth == 0 || (char *)frame >= thread->outermost)) {
        depth = 0;
        thread->outermost = frame;
    }
    thread->depth = depth + 1;
    return depth;
}

/* Claims a slot. The addition is one instruction, so that a signal handler that records calls of its own finds the slot
 * either unclaimed or claimed; other threads never touch this counter, hence no lock prefix. */
static inline uint32_t ensio_claim(struct ensio_thread *thread)
{
    uint32_t slot = 1;
#if defined(__x86_64__)
    __asm__ volatile("xaddl %0, %1" : "+r"(slot), "+m"(thread->next) : : "memory", "cc");
#else
    slot = __atomic_fetch_add(&thread->next, 1, __ATOMIC_RELAXED);
#endif
    return slot;
}

/* Stores one completed call. `moved` is a count of bytes, or minus an errno. */
static inline void ensio_store(struct ensio_thread *thread, uint16_t call, uint32_t file, int64_t offset,
                               uint64_t requested, int64_t moved, uint64_t start, uint64_t duration)
{
    struct ensio_event *slots;
    struct ensio_window *window;
    uint32_t slot, capacity;
    if (ENSIO_UNLIKELY(ensio_unwanted_calls[call]))
        return;
    thread->storing++;
    do { /* a signal handler may put another window under us: the slot that was claimed then stays empty */
        window = *(struct ensio_window *volatile *)&thread->window;
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        slots = thread->slots;
        capacity = thread->capacity;
        slot = ensio_claim(thread);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
    } while (ENSIO_UNLIKELY(window != *(struct ensio_window *volatile *)&thread->window));
    struct ensio_event *event = ENSIO_LIKELY(slot < capacity) ? slots + slot : ensio_next_window(thread);
    if (ENSIO_LIKELY(event != NULL)) {
        event->start = start;
        event->duration = duration;
        event->offset = offset;
        event->requested = requested;
        event->moved = moved;
        union {
            struct {
                uint32_t file;
                uint16_t call;
                uint8_t depth, flags;
            } part;
            uint64_t whole;
        } last = {.part = {file, call, (uint8_t)thread->depth, ensio_carried(thread->depth)}};
        __atomic_store_n((uint64_t *)(void *)&event->file, last.whole, __ATOMIC_RELEASE);
    }
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    thread->storing--;
    if (ENSIO_UNLIKELY(start > thread->clock_due))
        ensio_renew_clock(thread, start);
}

#endif
