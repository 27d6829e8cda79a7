/* text_table.h: texts that are kept as long as the process lives. Any thread and any signal handler finds and adds
 * them; the lock is taken only when a table grows. A handler that jumps out of an addition loses its memory, nothing
 * else. */
#ifndef ENSIO_CORE_TEXT_TABLE_H
#define ENSIO_CORE_TEXT_TABLE_H

#include <stdint.h>

/* The head of a kept text. */
struct ensio_kept {
    uint64_t hash; /* of the text and the seed */
    const char *text;
    uint32_t length;
    uint32_t seed; /* equal texts with different seeds are different */
};

struct ensio_kept_slots;
struct ensio_text_table {
    struct ensio_kept_slots *slots;
    uint32_t count;
};

/* Members of a text, to find it by. */
struct ensio_kept ensio_kept_like(uint32_t seed, const char *text, uint32_t length);

/* The text with these members, or NULL. */
struct ensio_kept *ensio_kept_find(const struct ensio_text_table *table, const struct ensio_kept *like);

/* Adds a text that lies in memory of ensio_keep. Returns it, or an equal one that is there already; NULL without
 * memory. */
struct ensio_kept *ensio_kept_add(struct ensio_text_table *table, struct ensio_kept *fresh);

/* Memory of zeros that is never returned; NULL without memory. */
void *ensio_keep(uint32_t bytes);

#endif
