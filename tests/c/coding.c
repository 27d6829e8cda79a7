/* The coding of job files with working memory, for tests and benchmarks that call it through ctypes. */
#include <spool/encode.h>

#include <stdint.h>

static struct ensio_encoder encoder;

uint32_t coding_most_block_bytes(void);
uint32_t coding_events(const struct ensio_event *events, uint32_t *count, uint8_t *to);
uint32_t coding_text(const uint8_t *all, uint32_t known, uint32_t length, uint8_t *to, uint32_t room);

uint32_t coding_most_block_bytes(void)
{
    return ENSIO_MOST_BLOCK_BYTES;
}

uint32_t coding_events(const struct ensio_event *events, uint32_t *count, uint8_t *to)
{
    return ensio_encode_events(&encoder, events, count, to);
}

uint32_t coding_text(const uint8_t *all, uint32_t known, uint32_t length, uint8_t *to, uint32_t room)
{
    return ensio_encode_text(&encoder, all, known, length, to, room);
}
