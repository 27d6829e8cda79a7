#include "encode.h"

#include <stddef.h>
#include <string.h>

enum { START, DURATION, FILE_NUMBER, REQUESTED, MOVED, OFFSET, COLUMNS };

/* Seven bits a byte, low ones first; all bytes but the last have their highest bit set. Gaps and durations have one or
 * two bytes, or two to four, in unpredictable order, so a loop would cost mispredicted branches. */
static inline uint8_t *put(uint8_t *to, uint64_t number)
{
    if (__builtin_expect(number < 1 << 14, 1)) {
        const uint32_t low = (uint32_t)number, has_two = low > 0x7f, coded = (low + (low & 0x3f80)) | has_two << 7;
        to[0] = (uint8_t)coded;
        to[1] = (uint8_t)(coded >> 8);
        return to + 1 + has_two;
    }
    if (__builtin_expect(number < 1 << 28, 1)) {
        const uint32_t low = (uint32_t)number, bytes = 2 + (low > 0x1fffff);
        const uint32_t spread = (low & 0x7f) | (low & 0x3f80) << 1 | (low & 0x1fc000) << 2 | (low & 0xfe00000) << 3;
        const uint32_t coded = spread | (0x80808080U & ((1U << 8 * bytes) - 1));
        for (int i = 0; i < 4; i++)
            to[i] = (uint8_t)(coded >> 8 * i);
        return to + bytes + 1;
    }
    for (; number >= 0x80; number >>= 7)
        *to++ = (uint8_t)(number | 0x80);
    *to++ = (uint8_t)number;
    return to;
}

/* Zigzag coding: small numbers of either sign become small numbers. */
static inline uint64_t folded(uint64_t difference)
{
    return difference << 1 ^ (0 - (difference >> 63));
}

/* The number of a template, or -1 if there are too many. */
static int template_number(struct ensio_encoder *encoder, struct ensio_template template, uint32_t *templates)
{
    uint64_t key;
    memcpy(&key, &template, sizeof key);
    uint32_t slot = (uint32_t)(key * 0x9e3779b97f4a7c15U >> 54);
    while (encoder->numbers[slot] && encoder->keys[slot] != key)
        slot = (slot + 1) % ENSIO_TEMPLATE_SLOTS;
    if (!encoder->numbers[slot]) {
        if (*templates == ENSIO_BLOCK_TEMPLATES)
            return -1;
        encoder->keys[slot] = key;
        encoder->templates[*templates] = template;
        encoder->numbers[slot] = (uint16_t)(++*templates);
    }
    return encoder->numbers[slot] - 1;
}

static inline uint32_t offset_place(const struct ensio_next_place *place, int64_t offset, uint64_t distance)
{
    if (offset == -1)
        return ENSIO_OFFSET_NONE;
    if (distance == 0)
        return ENSIO_OFFSET_FOLLOWS;
    return distance == place->distance ? ENSIO_OFFSET_STRIDES : ENSIO_OFFSET_GIVEN;
}

/* Whether two events differ in their times only. */
static inline int is_like(const struct ensio_event *event, const struct ensio_event *other)
{
    return memcmp(&event->offset, &other->offset, sizeof *event - offsetof(struct ensio_event, offset)) == 0;
}

static uint32_t assemble(const struct ensio_encoder *encoder, struct ensio_block *head, uint8_t *const ends[COLUMNS],
                         uint8_t *to)
{
    uint32_t *const lengths[COLUMNS] = {&head->start_bytes,     &head->duration_bytes, &head->file_bytes,
                                        &head->requested_bytes, &head->moved_bytes,    &head->offset_bytes};
    uint8_t *end = to + sizeof *head;
    memcpy(end, encoder->templates, head->templates * sizeof *encoder->templates);
    end += head->templates * sizeof *encoder->templates;
    memcpy(end, encoder->template_of, head->events);
    end += head->events;
    for (int i = 0; i < COLUMNS; i++) {
        *lengths[i] = (uint32_t)(ends[i] - encoder->columns[i]);
        memcpy(end, encoder->columns[i], *lengths[i]);
        end += *lengths[i];
    }
    memcpy(to, head, sizeof *head);
    const size_t before = offsetof(struct ensio_block, events);
    head->checksum = ensio_checksum(to + before, (uint64_t)(end - to) - before);
    memcpy(to, head, sizeof *head);
    return (uint32_t)(end - to);
}

uint32_t ensio_encode_events(struct ensio_encoder *encoder, const struct ensio_event *events, uint32_t *count,
                             uint8_t *to)
{
    memset(encoder, 0, offsetof(struct ensio_encoder, places));
    struct ensio_block head = {.magic = ENSIO_BLOCK_MAGIC};
    uint8_t *at[COLUMNS];
    for (int i = 0; i < COLUMNS; i++)
        at[i] = encoder->columns[i];
    const uint32_t most = *count < ENSIO_BLOCK_EVENTS ? *count : ENSIO_BLOCK_EVENTS;
    uint64_t end = 0;
    uint32_t file = 0, done;
    int number = 0;
    int is_plain = 0; /* the last event has no members but its times, and a template */
    int has_offsets = 0;
    for (done = 0; done < most; done++) {
        const struct ensio_event *event = &events[done];
        if (!is_plain || !is_like(event, event - 1)) {
            uint64_t *const usual = &encoder->requested[event->call % ENSIO_CALL_SLOTS];
            struct ensio_next_place *const place = &encoder->places[event->file % ENSIO_FILE_SLOTS];
            if (event->offset != -1 && !has_offsets++)
                memset(encoder->places, 0, sizeof encoder->places);
            const uint64_t distance = (uint64_t)event->offset - place->next;
            const uint32_t offset = offset_place(place, event->offset, distance);
            const struct ensio_template template = {
                .call = event->call,
                .depth = event->depth,
                .flags = event->flags,
                .shape = (uint16_t)((event->file != file ? ENSIO_GIVEN_FILE : 0U) |
                                    (event->requested != *usual ? ENSIO_GIVEN_REQUESTED : 0U) |
                                    ((uint64_t)event->moved != event->requested ? ENSIO_GIVEN_MOVED : 0U) | offset),
                .site = event->site,
            };
            number = template_number(encoder, template, &head.templates);
            if (number < 0)
                break;
            if (template.shape & ENSIO_GIVEN_FILE)
                at[FILE_NUMBER] = put(at[FILE_NUMBER], folded((uint64_t)event->file - file));
            if (template.shape & ENSIO_GIVEN_REQUESTED)
                at[REQUESTED] = put(at[REQUESTED], folded(event->requested - *usual));
            if (template.shape & ENSIO_GIVEN_MOVED)
                at[MOVED] = put(at[MOVED], folded((uint64_t)event->moved - event->requested));
            file = event->file;
            *usual = event->requested;
            if (offset == ENSIO_OFFSET_GIVEN) {
                at[OFFSET] = put(at[OFFSET], folded(distance));
                place->distance = distance;
            }
            if (offset != ENSIO_OFFSET_NONE)
                place->next = (uint64_t)event->offset + (event->moved > 0 ? (uint64_t)event->moved : 0);
            is_plain = template.shape == ENSIO_OFFSET_NONE;
        }
        encoder->template_of[done] = (uint8_t)number;
        at[START] = put(at[START], folded(event->start - end));
        at[DURATION] = put(at[DURATION], event->duration);
        end = event->start + event->duration;
    }
    head.events = *count = done;
    return assemble(encoder, &head, at, to);
}

static uint32_t match_slot(const uint8_t *at, int bits)
{
    uint64_t eight;
    memcpy(&eight, at, sizeof eight);
    return (uint32_t)(eight * 0x9e3779b97f4a7c15U >> (64 - bits));
}

static uint32_t equal_bytes(const uint8_t *some, const uint8_t *others, uint32_t most)
{
    uint32_t equal = 0;
    while (equal + 8 <= most && memcmp(some + equal, others + equal, 8) == 0)
        equal += 8;
    while (equal < most && some[equal] == others[equal])
        equal++;
    return equal;
}

/* The text is split into literal bytes and copies of at least eight earlier bytes: number of literals, literals, length
 * of the copy, and its distance unless the length is 0. */
uint32_t ensio_encode_text(struct ensio_encoder *encoder, const uint8_t *all, uint32_t known, uint32_t length,
                           uint8_t *to, uint32_t room)
{
    const uint32_t end = known + length, shortest = 8;
    uint32_t literal = known, at = 0;
    uint8_t *out = to;
    int bits = 8; /* more slots would cost more, as fresh memory, than they save */
    while (bits < ENSIO_MATCH_BITS && 4U << bits < end)
        bits++;
    memset(encoder->matches, 0, sizeof *encoder->matches << bits); /* position + 1 */
    while (at < end) {
        uint32_t found = 0, copied = 0;
        if (at + shortest <= end) {
            uint32_t *const slot = &encoder->matches[match_slot(all + at, bits)];
            found = *slot;
            *slot = at + 1;
        }
        if (at < known) {
            at++;
            continue;
        }
        if (found)
            copied = equal_bytes(all + found - 1, all + at, end - at);
        if (copied < shortest) {
            copied = 0;
            if (++at < end)
                continue;
        }
        if ((uint64_t)(out - to) + (at - literal) + 3 * ENSIO_MOST_NUMBER_BYTES > room)
            return 0;
        out = put(out, at - literal);
        memcpy(out, all + literal, at - literal);
        out = put(out + (at - literal), copied);
        if (copied)
            out = put(out, at - (found - 1));
        at += copied;
        literal = at;
    }
    return (uint32_t)(out - to);
}

/* Slicing by eight: a table for each of eight bytes. */
static uint32_t table[8][256];

static void fill_table(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t rest = byte;
        for (int bit = 0; bit < 8; bit++)
            rest = rest >> 1 ^ (rest & 1 ? 0xedb88320U : 0);
        table[0][byte] = rest;
    }
    for (int place = 1; place < 8; place++)
        for (uint32_t byte = 0; byte < 256; byte++)
            table[place][byte] = table[place - 1][byte] >> 8 ^ table[0][table[place - 1][byte] & 0xff];
}

uint32_t ensio_checksum(const void *bytes, uint64_t length)
{
    const uint8_t *at = bytes;
    uint32_t rest = ~0U;
    if (!table[7][255])
        fill_table();
    for (; length >= 8; length -= 8, at += 8) {
        const uint32_t low =
            rest ^ ((uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24);
        rest = table[7][low & 0xff] ^ table[6][low >> 8 & 0xff] ^ table[5][low >> 16 & 0xff] ^ table[4][low >> 24] ^
               table[3][at[4]] ^ table[2][at[5]] ^ table[1][at[6]] ^ table[0][at[7]];
    }
    for (; length > 0; length--, at++)
        rest = rest >> 8 ^ table[0][(rest ^ *at) & 0xff];
    return ~rest;
}

uint32_t ensio_encode_summed_text(struct ensio_encoder *encoder, const uint8_t *all, uint32_t known, uint32_t length,
                                  uint8_t *to, uint32_t room)
{
    const uint32_t coded = ensio_encode_text(encoder, all, known, length, to + sizeof coded, room - sizeof coded);
    const uint32_t sum = ensio_checksum(to + sizeof sum, coded);
    memcpy(to, &sum, sizeof sum);
    return coded ? coded + (uint32_t)sizeof sum : 0;
}

uint32_t ensio_sum_words(const void *numbers, uint64_t bytes)
{
    const uint64_t *first = numbers, *number = first + bytes / sizeof *first;
    uint64_t tail = 0, sum = 0; /* tails added up: number i counts i + 1 times; at the end 2i + 3 times */
    while (number > first)
        sum += tail += *--number;
    sum = 2 * sum + tail;
    return (uint32_t)(sum ^ sum >> 32) | 1;
}
