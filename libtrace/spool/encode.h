/* encode.h: the coding of a job file (ensio/jobfile.h): blocks of events, and texts. */
#ifndef ENSIO_SPOOL_ENCODE_H
#define ENSIO_SPOOL_ENCODE_H

#include <ensio/jobfile.h>

/* A 64-bit number takes at most ten bytes. Writing it may overwrite a few bytes more. */
#define ENSIO_MOST_NUMBER_BYTES 10
#define ENSIO_COLUMN_BYTES (ENSIO_BLOCK_EVENTS * ENSIO_MOST_NUMBER_BYTES + 16)
#define ENSIO_MOST_BLOCK_BYTES \
    (sizeof(struct ensio_block) + ENSIO_BLOCK_TEMPLATES * sizeof(struct ensio_template) + ENSIO_BLOCK_EVENTS + \
     6 * ENSIO_COLUMN_BYTES)

#define ENSIO_TEMPLATE_SLOTS 1024 /* a power of two, well above ENSIO_BLOCK_TEMPLATES */
#define ENSIO_MATCH_BITS 16       /* of short texts fewer */

struct ensio_next_place {
    uint64_t next;     /* where the last event of the file ended */
    uint64_t distance; /* distance from there when an offset was last given */
};

/* Working memory; its contents before a call do not matter. */
struct ensio_encoder {
    uint64_t requested[ENSIO_CALL_SLOTS];
    uint16_t numbers[ENSIO_TEMPLATE_SLOTS];           /* counted from 1 */
    struct ensio_next_place places[ENSIO_FILE_SLOTS]; /* all 0 until an event has an offset */
    uint64_t keys[ENSIO_TEMPLATE_SLOTS];
    struct ensio_template templates[ENSIO_BLOCK_TEMPLATES];
    uint8_t template_of[ENSIO_BLOCK_EVENTS];
    uint8_t columns[6][ENSIO_COLUMN_BYTES];
    uint32_t matches[1 << ENSIO_MATCH_BITS];
};

/* Codes a block of the first events to `to`, which has room for ENSIO_MOST_BLOCK_BYTES: all of them, unless they are
 * too many or too different. Returns the length of the block and sets `*count` to the number of events in it. */
uint32_t ensio_encode_events(struct ensio_encoder *encoder, const struct ensio_event *events, uint32_t *count,
                             uint8_t *to);

/* The length of a block, by its head. */
static inline uint32_t ensio_block_bytes(const struct ensio_block *block)
{
    return (uint32_t)(sizeof *block + block->templates * sizeof(struct ensio_template)) + block->events +
           block->start_bytes + block->duration_bytes + block->file_bytes + block->requested_bytes +
           block->moved_bytes + block->offset_bytes;
}

/* Codes the `length` bytes of text at all + known; the `known` bytes before them serve as dictionary. Returns the
 * length, or 0 if it exceeds `room`. */
uint32_t ensio_encode_text(struct ensio_encoder *encoder, const uint8_t *all, uint32_t known, uint32_t length,
                           uint8_t *to, uint32_t room);

/* The same with a sum: the CRC-32 of the coded text goes before it, and the length includes that. */
uint32_t ensio_encode_summed_text(struct ensio_encoder *encoder, const uint8_t *all, uint32_t known, uint32_t length,
                                  uint8_t *to, uint32_t room);

/* CRC-32 as in zlib. */
uint32_t ensio_checksum(const void *bytes, uint64_t length);

/* A sum of numbers of eight bytes, which a changed bit changes; never 0. */
uint32_t ensio_sum_words(const void *numbers, uint64_t bytes);

#endif
