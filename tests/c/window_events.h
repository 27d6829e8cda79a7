/* window_events.h: the events of a window as readers find them, in slots and in blocks. */
#ifndef ENSIO_WINDOW_EVENTS_H
#define ENSIO_WINDOW_EVENTS_H

#include "check.h"

#include <spool/encode.h>
#include <summary/drain.h>

#include <stddef.h>
#include <string.h>

static uint64_t number_at(const uint8_t **at)
{
    uint64_t number = 0;
    for (int shift = 0;; shift += 7) {
        number |= (uint64_t)(**at & 0x7f) << shift;
        if (*(*at)++ < 0x80)
            return number;
    }
}

static uint64_t unfolded(uint64_t number)
{
    return number >> 1 ^ (0 - (number & 1));
}

/* As docs/reference/formats/job-file.md describes it. */
static const uint8_t *each_coded(const uint8_t *bytes, void (*each)(const struct ensio_event *event, void *state),
                                 void *state)
{
    struct ensio_block block; /* bytes are not aligned */
    struct ensio_template templates[ENSIO_BLOCK_TEMPLATES];
    memcpy(&block, bytes, sizeof block);
    CHECK(block.magic == ENSIO_BLOCK_MAGIC && block.events > 0 && block.templates <= ENSIO_BLOCK_TEMPLATES);
    memcpy(templates, bytes + sizeof block, block.templates * sizeof *templates);
    const uint8_t *template_of = bytes + sizeof block + block.templates * sizeof *templates;
    const uint8_t *start = template_of + block.events, *duration = start + block.start_bytes;
    const uint8_t *file = duration + block.duration_bytes, *requested = file + block.file_bytes;
    const uint8_t *moved = requested + block.requested_bytes, *offset = moved + block.moved_bytes;
    const uint8_t *const end = offset + block.offset_bytes, *const summed =
                                                                bytes + offsetof(struct ensio_block, events);
    uint64_t usual[ENSIO_CALL_SLOTS] = {0}, next[ENSIO_FILE_SLOTS] = {0}, distance[ENSIO_FILE_SLOTS] = {0}, last = 0,
             of = 0;
    for (uint32_t i = 0; i < block.events; i++) {
        const struct ensio_template *like = &templates[template_of[i]];
        struct ensio_event event = {.call = like->call, .depth = like->depth, .flags = like->flags, .site = like->site};
        uint64_t *const bytes_of_call = &usual[like->call % ENSIO_CALL_SLOTS];
        event.start = last + unfolded(number_at(&start));
        event.duration = number_at(&duration);
        last = event.start + event.duration;
        of += like->shape & ENSIO_GIVEN_FILE ? unfolded(number_at(&file)) : 0;
        event.file = (uint16_t)of;
        *bytes_of_call += like->shape & ENSIO_GIVEN_REQUESTED ? unfolded(number_at(&requested)) : 0;
        event.requested = *bytes_of_call;
        event.moved = (int64_t)(event.requested + (like->shape & ENSIO_GIVEN_MOVED ? unfolded(number_at(&moved)) : 0));
        event.offset = -1;
        const uint32_t from = like->shape & ENSIO_OFFSET_PLACES, place = event.file % ENSIO_FILE_SLOTS;
        if (from == ENSIO_OFFSET_GIVEN)
            distance[place] = unfolded(number_at(&offset));
        if (from != ENSIO_OFFSET_NONE) {
            event.offset = (int64_t)(next[place] + (from == ENSIO_OFFSET_FOLLOWS ? 0 : distance[place]));
            next[place] = (uint64_t)event.offset + (event.moved > 0 ? (uint64_t)event.moved : 0);
        }
        each(&event, state);
    }
    CHECK(offset == end && block.checksum == ensio_checksum(summed, (uint64_t)(end - summed)));
    return end;
}

/* Calls `each` for every event of a window of events, coded ones too, in their order. Returns the number of those that
 * are in the summary, empty slots before them included. */
static uint64_t events_of_window(const struct ensio_window *window,
                                 void (*each)(const struct ensio_event *event, void *state), void *state)
{
    const struct ensio_event *events =
        (const struct ensio_event *)(const void *)((const char *)window + ENSIO_WINDOW_HEADER_BYTES);
    const int is_coded = window->kind == ENSIO_WINDOW_CODED;
    const uint32_t coded = is_coded ? window->coded : 0, summarised = window->summarised;
    const uint8_t *block = (const uint8_t *)window + ENSIO_BLOCKS_BYTES;
    for (uint32_t done = 0; done < coded; done += ENSIO_PART_EVENTS)
        block = each_coded(block, each, state);
    if (is_coded && summarised == ENSIO_CODED_SLOTS)
        return coded;
    for (uint64_t i = 0; i < ensio_window_slots(window); i++)
        if (events[i].call)
            each(&events[i], state);
    return coded + summarised;
}

#endif
