/* sites.c: numbers of call sites.
 *
 * A site is the return address of the caller of the outermost recorded call. If that lies in a library that serves the
 * program (modules.h), the site is the first caller outside of such libraries. With ENSIO_CALLPATH, a site is a path of
 * several callers. Such a path is found by walking up the stack, once: the walk leaves the places on the stack at which
 * the return addresses of the path lie. A later call has taken the same path if the same addresses lie at the same
 * places, because the frames of a function have one size.
 *
 * In a Python program all calls have the same few return addresses. With ENSIO_PYTHON_LINES the frames of the
 * interpreter are looked at in each call (python.c), and no return address is remembered. */
#include "sites.h"

#include "modules.h"
#include "python.h"
#include "unwind.h"

#include <core/bounded_string.h>
#include <core/lock.h>
#include <core/rawsys.h>
#include <core/recorder.h>
#include <core/settings.h>
#include <spool/spool.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 1024
#define BLOCK_BYTES 16384
#define MOST_FRAMES 64             /* of a path, those of libraries included */
#define MOST_PATHS 65536           /* of the process */
#define MOST_PATHS_OF_A_CALLER 256 /* are looked through for each call */
#define FARTHEST (1U << 20)        /* from a call to the frame of the outermost enclosing one */
#define SITE_ROOM (ENSIO_MOST_CALLERS * 512)

struct site {
    struct site *next;
    uint64_t hash;
    uint32_t spool; /* number of the spool that holds it */
    uint32_t length;
    uint16_t number;
    char text[];
};

/* Return addresses above that of the caller, and their distances from the frame of the outermost call. */
struct path {
    struct path *next;
    uintptr_t caller;
    uintptr_t base;    /* of the object that it lies in */
    struct site *site; /* NULL: there are too many */
    uint32_t frames;
    int is_gone; /* it leads through an object that was unloaded */
    struct {
        uintptr_t address;
        uintptr_t distance;
    } at[];
};

static struct site *sites[BUCKETS];
static struct path *paths[BUCKETS];
static uint32_t site_count, path_count, callers = 1;
static char *block;
static uint32_t block_left;
static int reads_python;

void ensio_sites_choose(const char *text, int python_lines)
{
    reads_python = python_lines && ensio_python_is_here();
    const long number = text && *text ? strtol(text, NULL, 10) : 1;
    callers = number < 0 ? 1 : number > ENSIO_MOST_CALLERS ? ENSIO_MOST_CALLERS : (uint32_t)number;
}

static void *room_for(uint32_t bytes)
{
    bytes = (bytes + 15U) & ~15U;
    if (block_left < bytes) {
        char *fresh = ensio_raw_memory(BLOCK_BYTES > bytes ? BLOCK_BYTES : bytes);
        if (!fresh)
            return NULL;
        block = fresh;
        block_left = BLOCK_BYTES > bytes ? BLOCK_BYTES : bytes;
    }
    void *found = block;
    block += bytes;
    block_left -= bytes;
    return found;
}

static uint32_t bucket_of(uint64_t key)
{
    return (uint32_t)(key * 0x9e3779b97f4a7c15U >> 54);
}

/* A part of this thread's stack that walks and comparisons have found to be there. A frame of a function may be shorter
 * than it was when a path was walked, and the stack of this thread than that of another: a word elsewhere is read by a
 * system call that refuses addresses without memory. */
static _Thread_local struct {
    const char *low, *high;
} stack;

/* 0, or -1. Where system calls of this kind are forbidden, no path was walked but those of the caller alone. */
static int word_at(const char *place, uintptr_t *word)
{
    if (ENSIO_UNLIKELY(place < stack.low || place + sizeof *word > stack.high)) {
        const int error = errno, found = ensio_read_word((uintptr_t)place, word);
        errno = error;
        if (found == 0 || found == -EFAULT)
            return found ? -1 : 0;
    }
    memcpy(word, place, sizeof *word);
    return 0;
}

/* All that lies between two frames of a stack is there. */
static void note_stack(const char *low, const char *high)
{
    const int overlaps = low <= stack.high && high >= stack.low;
    stack.low = overlaps && stack.low < low ? stack.low : low;
    stack.high = overlaps && stack.high > high ? stack.high : high;
}

static int matches(const struct path *path, const char *frame)
{
    uintptr_t word;
    for (uint32_t i = 0; i < path->frames; i++)
        if (word_at(frame + path->at[i].distance, &word) != 0 || word != path->at[i].address)
            return 0;
    if (path->frames && ENSIO_UNLIKELY(frame < stack.low || frame >= stack.high))
        note_stack(frame, frame + path->at[path->frames - 1].distance + sizeof word);
    return 1;
}

/* The frame of the outermost call, if it is on the stack still: a request may complete outside of any call. */
static const char *frame_of(const struct ensio_thread *thread)
{
    const char *const here = __builtin_frame_address(0), *const frame = thread->outermost;
    uintptr_t caller;
    if (frame <= here || frame - here > FARTHEST || word_at(frame + sizeof caller, &caller) != 0)
        return NULL;
    return caller == thread->caller ? frame : NULL;
}

static struct path *known_path(uintptr_t caller, const char *frame)
{
    uint32_t tried = 0;
    struct path *path = __atomic_load_n(&paths[bucket_of(caller)], __ATOMIC_ACQUIRE);
    for (; path && tried < MOST_PATHS_OF_A_CALLER; path = path->next)
        if (path->caller == caller) {
            if (path->frames == 0 || (frame && matches(path, frame)))
                return path;
            tried++;
        }
    return NULL;
}

struct walk {
    struct ensio_frame frames[MOST_FRAMES]; /* the first is that of the caller */
    uint32_t count;
    uint32_t first, named; /* the callers that make the site */
    uintptr_t base;        /* of the object of the caller */
};

/* The site consists of the first callers outside of libraries that serve them; without such a caller, of the caller
 * itself. */
static void walk_up(uintptr_t caller, const char *frame, struct walk *walk)
{
    struct ensio_module module;
    walk->frames[0] = frame ? ensio_caller_of(frame) : (struct ensio_frame){.address = caller};
    walk->count = 1;
    walk->first = walk->named = 0;
    for (;;) {
        const struct ensio_frame *last = &walk->frames[walk->count - 1];
        const int is_known = ensio_module_at(last->address - 1, &module) == 0;
        const int serves = is_known && ensio_module_serves(&module, last->address - 1);
        if (walk->count == 1)
            walk->base = is_known ? module.base : 0;
        if (walk->named && serves) { /* that called main, a thread, or the program's function */
            walk->count--;
            return;
        }
        if (!serves) {
            walk->first = walk->named ? walk->first : walk->count - 1;
            if (++walk->named == callers)
                return;
        }
        if (!frame || walk->count == MOST_FRAMES)
            break;
        walk->frames[walk->count] = *last;
        if (ensio_unwind(&walk->frames[walk->count]) != 0)
            break;
        walk->count++;
    }
    if (!walk->named)
        walk->named = 1;
}

/* A line for each caller, the innermost first: the return address in the object's file, its build id, its path. */
static void describe(const struct walk *walk, struct ensio_string *text)
{
    for (uint32_t i = walk->first; i < walk->first + walk->named; i++) {
        const uintptr_t address = walk->frames[i].address;
        struct ensio_module module;
        const uint32_t before = text->length;
        if (i > walk->first)
            ensio_add(text, "\n");
        if (ensio_module_at(address - 1, &module) != 0) {
            ensio_add_number(text, address);
            ensio_add(text, " - ");
        } else {
            ensio_add_number(text, address - module.base);
            ensio_add(text, " ");
            ensio_module_build_id(&module, text);
            ensio_add(text, " ");
            ensio_add(text, *module.name ? module.name : ensio_settings.program);
        }
        if (text->full) {
            text->length = before;
            return;
        }
    }
}

static struct site *site_for(const struct ensio_string *text)
{
    const uint64_t hash = ensio_hash_bytes(0, text->text, text->length);
    struct site **const bucket = &sites[bucket_of(hash)];
    for (struct site *site = *bucket; site; site = site->next)
        if (site->hash == hash && site->length == text->length && memcmp(site->text, text->text, text->length) == 0)
            return site;
    if (site_count == UINT16_MAX)
        return NULL;
    struct site *site = room_for((uint32_t)sizeof *site + text->length);
    if (!site)
        return NULL;
    *site = (struct site){.next = *bucket, .hash = hash, .length = text->length, .number = (uint16_t)++site_count};
    memcpy(site->text, text->text, text->length);
    *bucket = site;
    return site;
}

/* The caller holds the lock. */
static int is_stored(struct site *site)
{
    if (ensio_ensure_spool() != 0)
        return 0;
    if (site->spool != ensio_spool_number) {
        if (ensio_text_store(ENSIO_TEXT_SITE, site->number, site->text, site->length) != 0)
            return 0;
        __atomic_store_n(&site->spool, ensio_spool_number, __ATOMIC_RELAXED);
    }
    return 1;
}

static void add_path(uintptr_t caller, const char *frame, const struct walk *walk, struct site *site)
{
    const uint32_t frames = walk->count - 1;
    if (path_count == MOST_PATHS)
        return;
    struct path *path = room_for((uint32_t)(sizeof *path + frames * sizeof *path->at));
    if (!path)
        return;
    struct path **const bucket = &paths[bucket_of(caller)];
    *path = (struct path){.next = *bucket, .caller = caller, .base = walk->base, .site = site, .frames = frames};
    for (uint32_t i = 0; i < frames; i++) {
        path->at[i].address = walk->frames[i + 1].address;
        path->at[i].distance = walk->frames[i + 1].slot - (uintptr_t)frame;
    }
    __atomic_store_n(bucket, path, __ATOMIC_RELEASE);
    path_count++;
}

static uint16_t number_of(struct site *site)
{
    if (!site) {
        __atomic_fetch_add(&ensio_losses->calls_without_site, 1, __ATOMIC_RELAXED);
        return 0;
    }
    return site->number;
}

static uint16_t new_path(uintptr_t caller, const char *frame)
{
    /* not on the stack, because that of a signal handler may be small */
    struct scratch {
        struct walk walk;
        char text[SITE_ROOM];
    } *scratch = ensio_raw_memory(sizeof *scratch);
    if (!scratch)
        return 0;
    struct ensio_string text = ensio_string_in(scratch->text, sizeof scratch->text);
    walk_up(caller, frame, &scratch->walk);
    if (frame)
        note_stack(frame, (const char *)scratch->walk.frames[scratch->walk.count - 1].slot + sizeof caller);
    describe(&scratch->walk, &text);
    struct ensio_held held = ensio_lock();
    uint16_t number = 0;
    if (ensio_ensure_spool() == 0) {
        struct site *site = site_for(&text);
        const int stored = site && is_stored(site);
        if (frame && (stored || !site))
            add_path(caller, frame, &scratch->walk, site);
        number = stored ? site->number : number_of(NULL);
    }
    ensio_unlock(held);
    ensio_raw_unmap(scratch, sizeof *scratch);
    return number;
}

/* The site of the lines of a Python program; 0: this thread runs none. */
static uint16_t python_site(void)
{
    static char room[SITE_ROOM]; /* not on the stack, which may be small */
    const int error = errno;
    struct ensio_held held = ensio_lock();
    struct ensio_string text = ensio_string_in(room, sizeof room);
    uint16_t number = 0;
    void **kept;
    if (ensio_python_callers(callers, &text, &kept) == 0) {
        struct site *site = kept && *kept ? *kept : text.length ? site_for(&text) : NULL;
        if (kept)
            *kept = site;
        number = ensio_ensure_spool() == 0 && site && is_stored(site) ? site->number : number_of(NULL);
    }
    ensio_unlock(held);
    errno = error;
    return number;
}

uint16_t ensio_site_find(struct ensio_thread *thread)
{
    const uintptr_t caller = thread->caller;
    if (caller <= UINT16_MAX) /* the number of a site */
        return (uint16_t)caller;
    if (!callers || ensio_locked())
        return 0;
    if (reads_python) {
        const uint16_t number = python_site();
        if (number)
            return number;
    }
    const char *const frame = frame_of(thread);
    struct path *path = known_path(caller, frame);
    if (!path) {
        const int error = errno;
        const uint16_t number = new_path(caller, frame);
        errno = error;
        return number;
    }
    if (!path->site)
        return number_of(NULL);
    if (__atomic_load_n(&path->site->spool, __ATOMIC_RELAXED) != ensio_spool_number) {
        struct ensio_held held = ensio_lock();
        const int stored = is_stored(path->site);
        ensio_unlock(held);
        if (!stored)
            return 0;
    }
    if (path->frames == 0 && callers == 1 && !reads_python)
        ensio_site_remember(caller, path->site->number);
    return path->site->number;
}

static int is_loaded(const struct path *path)
{
    struct ensio_module module;
    for (uint32_t i = 0; i < path->frames; i++)
        if (ensio_module_at(path->at[i].address - 1, &module) != 0)
            return 0;
    return ensio_module_at(path->caller - 1, &module) == 0 && module.base == path->base;
}

/* Paths stay where they are for good, so they are looked through without the lock (modules.h). */
void ensio_sites_check(void)
{
    for (uint32_t i = 0; i < BUCKETS; i++)
        for (struct path *path = __atomic_load_n(&paths[i], __ATOMIC_ACQUIRE); path;
             path = __atomic_load_n(&path->next, __ATOMIC_ACQUIRE))
            if (!is_loaded(path))
                __atomic_store_n(&path->is_gone, 1, __ATOMIC_RELAXED);
    struct ensio_held held = ensio_lock();
    for (uint32_t i = 0; i < BUCKETS; i++)
        for (struct path **link = &paths[i]; *link;)
            if (!__atomic_load_n(&(*link)->is_gone, __ATOMIC_RELAXED))
                link = &(*link)->next;
            else
                __atomic_store_n(link, (*link)->next, __ATOMIC_RELEASE); /* others may still be looking at it */
    ensio_sites_forget();
    ensio_unlock(held);
}
