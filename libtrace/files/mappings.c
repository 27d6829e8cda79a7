#include "mappings.h"

#include "paths.h"

#include <core/lock.h>
#include <core/rawsys.h>

#include <sys/auxv.h>

#define ATTEMPTS 64

uint32_t ensio_mappings;

/* Sorted by address, without overlaps. The sequence is odd while a thread changes the table. */
static struct ensio_mapping *ranges;
static uint32_t sequence;

/* A reader of a half-changed range also sees the odd sequence. */
#define LOAD(member) __atomic_load_n(&(member), __ATOMIC_ACQUIRE)
#define STORE(member, value) __atomic_store_n(&(member), (value), __ATOMIC_RELEASE)

static struct ensio_mapping load(uint32_t i)
{
    return (struct ensio_mapping){LOAD(ranges[i].first), LOAD(ranges[i].end), LOAD(ranges[i].offset),
                                  LOAD(ranges[i].file)};
}

static void store(uint32_t i, struct ensio_mapping range)
{
    STORE(ranges[i].first, range.first);
    STORE(ranges[i].end, range.end);
    STORE(ranges[i].offset, range.offset);
    STORE(ranges[i].file, range.file);
}

/* The first range that ends after an address. */
static uint32_t place_of(uintptr_t address)
{
    uint32_t low = 0, high = LOAD(ensio_mappings);
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (LOAD(ranges[middle].end) <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int search(uintptr_t first, uintptr_t end, struct ensio_mapping *found)
{
    uint32_t place = place_of(first);
    if (place >= LOAD(ensio_mappings))
        return 0;
    *found = load(place);
    if (found->first < first) {
        found->offset += (int64_t)(first - found->first);
        found->first = first;
    }
    return found->first < end;
}

/* The granularity of mappings. An address that is not a multiple of it maps and unmaps nothing. */
static uintptr_t page_bytes(void)
{
    return getauxval(AT_PAGESZ);
}

static uintptr_t end_of(uintptr_t first, size_t bytes)
{
    uintptr_t page = page_bytes(), whole = (bytes + page - 1) & ~(page - 1);
    return first + whole < first ? UINTPTR_MAX : first + whole;
}

int ensio_mapping_search(const void *at, size_t bytes, struct ensio_mapping *found)
{
    uintptr_t first = (uintptr_t)at, end = end_of(first, bytes);
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        uint32_t before = LOAD(sequence);
        int touches = search(first, end, found);
        if (!(before & 1) && LOAD(sequence) == before)
            return touches;
    }
    struct ensio_held held = ensio_lock(); /* the thread that changes the table may be preempted */
    int touches = search(first, end, found);
    ensio_unlock(held);
    return touches;
}

static void begin_change(void)
{
    STORE(sequence, sequence | 1); /* already odd in a child that was forked during a change */
}

static void end_change(void)
{
    STORE(sequence, (sequence | 1) + 1);
}

/* Inserts room for `more` ranges at a place; a negative number removes ranges. */
static void shift(uint32_t place, int more)
{
    uint32_t count = ensio_mappings;
    if (more > 0)
        for (uint32_t i = count; i > place; i--)
            store(i, ranges[i - 1]);
    else
        for (uint32_t i = place - (uint32_t)more; i < count; i++)
            store(i + (uint32_t)more, ranges[i]);
    STORE(ensio_mappings, count + (uint32_t)more);
}

static void cut(uintptr_t first, uintptr_t end)
{
    for (uint32_t i = place_of(first); i < ensio_mappings && ranges[i].first < end;) {
        struct ensio_mapping head = ranges[i], tail = ranges[i];
        head.end = first;
        tail.offset += (int64_t)(end - tail.first);
        tail.first = end;
        int keeps_head = ranges[i].first < first, keeps_tail = end < ranges[i].end;
        if (keeps_head && keeps_tail && ensio_mappings == ENSIO_MAPPINGS)
            keeps_tail = 0; /* no room to split one range into two */
        if (!keeps_head && !keeps_tail) {
            shift(i, -1);
            continue;
        }
        if (keeps_head && keeps_tail)
            shift(i, 1);
        if (keeps_head)
            store(i++, head);
        if (keeps_tail)
            store(i++, tail);
    }
}

void ensio_mapping_add(const void *at, size_t bytes, int64_t offset, uint32_t file)
{
    uintptr_t first = (uintptr_t)at, end = end_of(first, bytes);
    struct ensio_held held = ensio_lock();
    if (!ranges)
        ranges = ensio_raw_memory(ENSIO_MAPPINGS * sizeof *ranges);
    begin_change();
    cut(first, end);
    if (ranges && ensio_mappings < ENSIO_MAPPINGS) {
        uint32_t place = place_of(first);
        shift(place, 1);
        store(place, (struct ensio_mapping){first, end, offset, file});
    }
    end_change();
    ensio_unlock(held);
}

void ensio_mapping_cut(const void *at, size_t bytes)
{
    uintptr_t first = (uintptr_t)at;
    if (first & (page_bytes() - 1))
        return;
    struct ensio_held held = ensio_lock();
    begin_change();
    cut(first, end_of(first, bytes));
    end_change();
    ensio_unlock(held);
}

void ensio_mappings_store_files(void)
{
    for (uint32_t i = 0; i < ensio_mappings; i++)
        ensio_file_store(ranges[i].file);
}
