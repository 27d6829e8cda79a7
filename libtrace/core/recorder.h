/* recorder.h: the state of the recorder, and the path that every recorded call takes.
 *
 * A wrapper calls ensio_ready, makes the real call between two readings of the clock, and calls ensio_store. Nothing on
 * that path locks, allocates, makes a system call or changes errno. Everything else is a slow path: a thread's first
 * call, a full window, an unknown descriptor, opening and closing. A slow path blocks signals, takes the lock and
 * restores errno. */
#ifndef ENSIO_CORE_RECORDER_H
#define ENSIO_CORE_RECORDER_H

#include <ensio/event.h>
#include <stddef.h>
#include <stdint.h>

#define ENSIO_LIKELY(x) __builtin_expect(!!(x), 1)
#define ENSIO_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* The process that the recorder's state belongs to. It lies in a page that the kernel wipes in a forked child. A child
 * therefore finds 0 here, whatever created it, and starts its own recording. */
struct ensio_process {
    uint32_t generation; /* the pid; 0: nothing is recorded in this process, or not yet */
    uint32_t lock;       /* see lock.h; a child must not wait for a thread of its parent */
    uint64_t facts;      /* ENSIO_ACCOUNT_...: what the process was seen to do */
};
extern struct ensio_process *ensio_process;

struct ensio_thread {
    struct ensio_event *slots; /* slots of the thread's window */
    uint32_t next;             /* the next slot to claim; at or over capacity: the window is full */
    uint32_t capacity;         /* slots to fill before the window is checked again (windows.c) */
    uint32_t generation;       /* generation of the process for which the members above were set */
    uint32_t depth;            /* recorded calls that enclose the current one, and flags (ENSIO_CARRIES_READ ...) */
    char *outermost;           /* stack frame of the outermost enclosing call */
    uintptr_t caller;          /* its return address; below 65,536: the number of a site in its place */
    uint32_t storing;          /* events that are being stored: more than 1 only in signal handlers */
    uint32_t number;           /* in the process, from 0 */
    uint32_t excluded_calls;   /* not yet added to the spool's head */
    uint64_t retry_due;        /* ticks after which a window is requested again, if there was none */
    uint32_t suppressed;       /* nesting depth of calls whose inner calls are not recorded */
    uint64_t clock_due;        /* ticks after which the clock reading in the spool is renewed */
    struct ensio_window *window;
    struct ensio_window *retired; /* an older window that an interrupted store may still be writing to */
    struct ensio_cursor *cursor;  /* state of draining its events into the summary */
};
extern _Thread_local struct ensio_thread ensio_thread;

/* A fact that the account of the process states was seen. */
static inline void ensio_saw(uint64_t fact)
{
    __atomic_fetch_or(&ensio_process->facts, fact, __ATOMIC_RELAXED);
}

/* The account of bytes of the process: in its spool, once there is one. */
extern struct ensio_account *ensio_account;

static inline void ensio_leave_out_read(int64_t moved)
{
    if (moved > 0)
        __atomic_fetch_add(&ensio_account->excluded.read, (uint64_t)moved, __ATOMIC_RELAXED);
}

/* `on_file`: the bytes make, or may make, a regular file dirty. */
static inline void ensio_leave_out_write(int on_file, int64_t moved)
{
    if (moved <= 0)
        return;
    __atomic_fetch_add(&ensio_account->excluded.written, (uint64_t)moved, __ATOMIC_RELAXED);
    if (on_file)
        __atomic_fetch_add(&ensio_account->excluded_on_files, (uint64_t)moved, __ATOMIC_RELAXED);
}

/* Flags in a thread's depth: the event of an enclosing call counts the bytes that inner calls read or write. They lie
 * above the eight bits of the depth, as an event's flags follow its depth. */
#define ENSIO_CARRIES_READ (ENSIO_CARRIED_READ << 8)
#define ENSIO_CARRIES_WRITE (ENSIO_CARRIED_WRITE << 8)
#define ENSIO_IN_MPI (4 << 8)                    /* in an MPI call, which may progress non-blocking I/O of any thread */
#define ENSIO_SUMS_ONLY (ENSIO_SUMMED_ONLY << 8) /* while an event is stored: it is for the summary only */

/* Pending non-blocking I/O of MPI: the number of reads in the lower half, of writes in the upper half. */
extern uint64_t ensio_io_pending;

/* The flags of an event that is stored at this depth. */
static inline uint8_t ensio_carried(uint32_t depth)
{
    uint32_t carried = depth >> 8;
    if (ENSIO_UNLIKELY(depth & ENSIO_IN_MPI)) {
        const uint64_t pending = __atomic_load_n(&ensio_io_pending, __ATOMIC_RELAXED);
        carried |= ((uint32_t)pending ? ENSIO_CARRIED_READ : 0) | (pending >> 32 ? ENSIO_CARRIED_WRITE : 0);
    }
    return (uint8_t)(carried & (ENSIO_CARRIED_READ | ENSIO_CARRIED_WRITE | ENSIO_SUMMED_ONLY));
}

/* By call number: 1 if the layer of the call is not recorded (ENSIO_LAYERS). */
#define ENSIO_CALLS 1024 /* a power of two, above all call numbers (calls/tables.def) */
extern uint8_t ensio_unwanted_calls[ENSIO_CALLS];

/* Maps the page for ensio_process, if that is still to be done. */
void ensio_process_map(void);

/* Whether the state in memory belongs to this process. It does not between vfork and exec. Asks the kernel. */
int ensio_owns_memory(void);

/* Another process has this memory, or had it: by vfork, or clone with CLONE_VM. Never reset, because a signal handler
 * of the parent cannot know whether the child has begun. */
extern uint32_t ensio_memory_may_be_shared;

/* The same as ensio_owns_memory, without a system call in a process that has never shared its memory. */
static inline int ensio_is_owner(void)
{
    return ENSIO_LIKELY(!__atomic_load_n(&ensio_memory_may_be_shared, __ATOMIC_RELAXED)) || ensio_owns_memory();
}

/* Begins the recording in this process, if the process is recorded; returns whether it is. The caller holds the lock.
 * process/lifecycle.c defines this function and the next one, which lower layers call at a process's first call or
 * file. */
int ensio_begin(void);

/* Makes a spool for this process if it has none: 0, or minus an errno. The caller holds the lock. */
int ensio_ensure_spool(void);

/* Slow paths: threads/thread.c defines ensio_prepare and ensio_renew_clock, threads/windows.c ensio_next_window. */
int ensio_prepare(struct ensio_thread *thread);
struct ensio_event *ensio_next_window(struct ensio_thread *thread);
void ensio_renew_clock(struct ensio_thread *thread, uint64_t now);

/* Whether calls of this thread are recorded. Prepares the thread at its first call. */
static inline int ensio_ready(struct ensio_thread *thread)
{
    return ENSIO_LIKELY(thread->generation == __atomic_load_n(&ensio_process->generation, __ATOMIC_RELAXED)) ||
           ensio_prepare(thread);
}

/* Call sites of return addresses: the address times 2^16, plus the number of its site. A return address that is not
 * here is looked for by ensio_site_find (sites/sites.c). */
#define ENSIO_SITE_BITS 10
extern uint64_t ensio_known_sites[1 << ENSIO_SITE_BITS];

static inline uint64_t *ensio_site_place(uintptr_t caller)
{
    return &ensio_known_sites[caller * 0x9e3779b97f4a7c15U >> (64 - ENSIO_SITE_BITS)];
}

static inline void ensio_site_remember(uintptr_t caller, uint16_t site)
{
    if ((uint64_t)caller >> 48 == 0)
        __atomic_store_n(ensio_site_place(caller), (uint64_t)caller << 16 | site, __ATOMIC_RELAXED);
}

/* None is known any more: texts of sites are not in the next spool, and other code may come to an address. */
void ensio_sites_forget(void);

uint16_t ensio_site_find(struct ensio_thread *thread);

/* The call site of the outermost call of a thread. */
static inline uint16_t ensio_site(struct ensio_thread *thread)
{
    const uint64_t known = __atomic_load_n(ensio_site_place(thread->caller), __ATOMIC_RELAXED);
    return ENSIO_LIKELY(known >> 16 == thread->caller) ? (uint16_t)known : ensio_site_find(thread);
}

/* The return address of a function, by its frame address. Elsewhere the layout of frames is another. */
static inline uintptr_t ensio_return_address(const void *frame)
{
#if defined(__x86_64__) || defined(__aarch64__)
    return ((const uintptr_t *)frame)[1];
#else
    return 0;
#endif
}

/* Enters a call and returns the previous depth with its flags, which the caller restores afterwards. A signal handler
 * may jump out of a call, which then never restores the depth. Stacks grow downwards, so the frame of such a call lies
 * below that of the next call. */
static inline uint32_t ensio_enter(struct ensio_thread *thread, void *frame)
{
    uint32_t depth = thread->depth;
    if (ENSIO_LIKELY(depth == 0 || (char *)frame >= thread->outermost)) {
        depth = 0;
        thread->outermost = frame;
        thread->caller = ensio_return_address(frame);
    }
    thread->depth = depth + 1;
    return depth;
}

/* Claims a slot. The addition is one instruction, so that a signal handler that records calls finds the slot either
 * unclaimed or claimed. Other threads never touch this counter, so no lock prefix is needed. */
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

/* Stores a completed call. `moved` is a number of bytes, or minus an errno; `access` are flags ENSIO_OPENED_TO_... or
 * ENSIO_WAITS_FOR_DEVICE. */
static inline void ensio_store_with(uint8_t access, struct ensio_thread *thread, uint16_t call, uint32_t file,
                                    int64_t offset, uint64_t requested, int64_t moved, uint64_t start,
                                    uint64_t duration)
{
    struct ensio_event *slots;
    struct ensio_window *window;
    uint32_t slot, capacity;
    if (ENSIO_UNLIKELY(ensio_unwanted_calls[call]))
        return;
    const uint16_t site = ensio_site(thread);
    thread->storing++;
    do { /* a signal handler may replace the window: the slot that was claimed then stays empty */
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
                uint16_t file, site, call;
                uint8_t depth, flags;
            } part;
            uint64_t whole;
        } last = {.part = {(uint16_t)file, site, call, (uint8_t)thread->depth, ensio_carried(thread->depth) | access}};
        __atomic_store_n((uint64_t *)(void *)&event->file, last.whole, __ATOMIC_RELEASE);
    }
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    thread->storing--;
    if (ENSIO_UNLIKELY(start + duration > thread->clock_due))
        ensio_renew_clock(thread, start + duration);
}

static inline void ensio_store(struct ensio_thread *thread, uint16_t call, uint32_t file, int64_t offset,
                               uint64_t requested, int64_t moved, uint64_t start, uint64_t duration)
{
    ensio_store_with(0, thread, call, file, offset, requested, moved, start, duration);
}

#endif
