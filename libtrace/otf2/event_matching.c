/* event_matching.c: finds the begin that belongs to the end of an operation: one with the same handle and number.
 * Within a location, the latest such begin is taken, because some recorders give all blocking operations the same
 * number. A non-blocking operation blocks its program until the call in which it begins is left, or until it is issued;
 * from its begin to its end it is in flight. An end without a begin in its location is kept and matched when all
 * locations have been read, with the begins in other locations of the same traced process. */
#include "reader.h"

#include <stdlib.h>
#include <string.h>

static struct ensio_operation *open_here; /* begun in this location, oldest first; mostly one or two */
static size_t open_count, open_room;

struct found_end {
    uint64_t time, id, bytes;
    uint32_t group, handle;
    uint16_t error;
};
static struct ensio_operation *begins; /* unmatched begins of all locations */
static struct found_end *ends;
static size_t begin_count, begin_room, end_count, end_room;
static uint32_t group_here;

static void *room_for(void *entries, size_t count, size_t *room, size_t bytes)
{
    if (count < *room)
        return entries;
    *room = *room ? 2 * *room : 64;
    return ensio_more(entries, *room * bytes);
}

void ensio_operation_begins(const struct ensio_operation *operation)
{
    open_here = room_for(open_here, open_count, &open_room, sizeof *open_here);
    open_here[open_count++] = *operation;
}

/* Flags for bytes that pending operations of this location count, at this depth: operations that enclose the call, and
 * background operations of MPI for any nested call. */
uint8_t ensio_carried_by_operations(uint8_t depth)
{
    uint8_t carried = 0;
    for (size_t i = open_count > 16 ? open_count - 16 : 0; i < open_count; i++)
        if ((!open_here[i].non_blocking && open_here[i].row.depth < depth) || (open_here[i].carries_all && depth))
            carried |= open_here[i].row.kind == ENSIO_OTF2_ROW_READ    ? 1
                       : open_here[i].row.kind == ENSIO_OTF2_ROW_WRITE ? 2
                                                                       : 0;
    return carried;
}

uint8_t ensio_operations_under_way(void)
{
    unsigned count = 0;
    for (size_t i = 0; i < open_count && count < UINT8_MAX; i++)
        count += !open_here[i].non_blocking;
    return (uint8_t)count;
}

/* Score-P does not know the bytes of fsync or scanf, whether they fail or not. Where it knows the bytes requested, a
 * missing number of bytes moved means that the call failed. */
static bool cannot_say(const struct ensio_operation *operation, uint64_t bytes)
{
    if (ensio_archive.ours || bytes <= INT64_MAX)
        return false;
    return bytes != OTF2_UNDEFINED_UINT64 || !operation->says_bytes;
}

static void finish(struct ensio_operation *operation, uint64_t time, uint64_t bytes, uint16_t error)
{
    struct ensio_otf2_row *row = &operation->row;
    bool is_unknown = !error && cannot_say(operation, bytes);
    row->moved = is_unknown ? 0 : (int64_t)bytes; /* OTF2's undefined number is -1 too */
    ensio_archive.counts.without_bytes += is_unknown && row->kind != ENSIO_OTF2_ROW_FLUSH;
    row->error = error;
    if (!operation->has_duration) {
        row->duration = ensio_ns_between(operation->time, time);
        if (operation->non_blocking && operation->posted) {
            row->flight = row->duration;
            row->duration = ensio_ns_between(operation->time, operation->posted < time ? operation->posted : time);
            row->request = operation->number;
        }
    }
    if (!operation->has_offset && !ensio_archive.ours && row->kind != ENSIO_OTF2_ROW_FLUSH)
        row->offset = ensio_position_of(operation->handle, row->moved);
    if (is_unknown && !operation->has_offset && row->kind != ENSIO_OTF2_ROW_FLUSH)
        ensio_position_set(operation->handle, -1);
    ensio_put_row(row);
}

void ensio_operation_issued(uint32_t handle, uint64_t id, uint64_t time)
{
    for (size_t i = open_count; i--;)
        if (open_here[i].id == id && open_here[i].handle == handle) {
            if (!open_here[i].call)
                open_here[i].posted = time;
            return;
        }
}

void ensio_operations_posted_by(uint64_t call, uint64_t time)
{
    for (size_t i = open_count; i--;)
        if (open_here[i].call == call)
            open_here[i].posted = time;
}

uint32_t ensio_operation_ends(uint32_t handle, uint64_t id, uint64_t time, uint64_t bytes,
                              const struct ensio_attributes *told)
{
    uint16_t error = told->has >> ENSIO_ATTRIBUTE_ERRNO & 1 ? (uint16_t)told->value[ENSIO_ATTRIBUTE_ERRNO] : 0;
    for (size_t i = open_count; i--;)
        if (open_here[i].id == id && open_here[i].handle == handle) {
            uint32_t number = open_here[i].posted ? open_here[i].number : 0;
            finish(open_here + i, time, bytes, error);
            open_count--;
            memmove(open_here + i, open_here + i + 1, (open_count - i) * sizeof *open_here);
            return number;
        }
    ends = room_for(ends, end_count, &end_room, sizeof *ends);
    ends[end_count++] = (struct found_end){time, id, bytes, group_here, handle, error};
    return 0;
}

/* The locations of a process form a group. */
void ensio_operations_in_group(uint32_t group)
{
    group_here = group;
}

void ensio_operations_of_next_location(void)
{
    for (size_t i = 0; i < open_count; i++) {
        begins = room_for(begins, begin_count, &begin_room, sizeof *begins);
        begins[begin_count++] = open_here[i];
    }
    open_count = 0;
}

struct key {
    uint32_t group, handle;
    uint64_t id, time;
};

static struct key key_of_begin(const struct ensio_operation *begin)
{
    return (struct key){ensio_archive.places[begin->row.location].group, begin->handle, begin->id, begin->time};
}

static struct key key_of_end(const struct found_end *end)
{
    return (struct key){end->group, end->handle, end->id, end->time};
}

static int compare_keys(struct key one, struct key other)
{
    if (one.group != other.group)
        return one.group < other.group ? -1 : 1;
    if (one.handle != other.handle)
        return one.handle < other.handle ? -1 : 1;
    if (one.id != other.id)
        return one.id < other.id ? -1 : 1;
    return one.time < other.time ? -1 : one.time > other.time;
}

static int compare_begins(const void *a, const void *b)
{
    return compare_keys(key_of_begin(a), key_of_begin(b));
}

static int compare_ends(const void *a, const void *b)
{
    return compare_keys(key_of_end(a), key_of_end(b));
}

/* For a handle and number, the first begin belongs to the first end after it. */
void ensio_match_across_locations(void)
{
    if (begin_count)
        qsort(begins, begin_count, sizeof *begins, compare_begins);
    if (end_count)
        qsort(ends, end_count, sizeof *ends, compare_ends);
    size_t begin = 0, end = 0;
    while (begin < begin_count && end < end_count) {
        struct ensio_operation *one = begins + begin;
        const struct found_end *other = ends + end;
        struct key of_begin = key_of_begin(one), of_end = key_of_end(other);
        bool alike = of_begin.group == of_end.group && of_begin.handle == of_end.handle && of_begin.id == of_end.id;
        if (alike && one->time <= other->time) {
            one->has_offset = true; /* independently of the position */
            finish(one, other->time, other->bytes, other->error);
            begin++, end++;
        } else if (compare_keys(of_begin, of_end) < 0) {
            ensio_archive.counts.never_complete++;
            begin++;
        } else {
            ensio_archive.counts.without_begin++;
            end++;
        }
    }
    ensio_archive.counts.never_complete += begin_count - begin;
    ensio_archive.counts.without_begin += end_count - end;
}
