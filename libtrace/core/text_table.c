#include "text_table.h"

#include "bounded_string.h"
#include "lock.h"
#include "rawsys.h"

#include <string.h>

#define FIRST_SLOTS 512
#define BLOCK_BYTES 65536U
#define TAG_SHIFT 48 /* bits of an address in a program */
#define MOVED 1      /* in the place of 0 in slots that grew: what belongs here is in the larger ones */

/* Addresses of texts, and above them bits of their hashes, so that few texts are touched. At most three quarters are
 * used. A reader may still be in older slots: they lose their memory and read as empty, so that what is not found
 * there, or was added there, is looked up once more in the larger ones. */
struct ensio_kept_slots {
    uint64_t mask;
    uint64_t kept[];
};

static uint64_t entry_of(const struct ensio_kept *kept)
{
    return (uint64_t)(uintptr_t)kept | kept->hash >> TAG_SHIFT << TAG_SHIFT;
}

static struct ensio_kept *kept_in(uint64_t entry)
{
    return (struct ensio_kept *)(uintptr_t)(entry & ((1ULL << TAG_SHIFT) - 1));
}

struct ensio_kept ensio_kept_like(uint32_t seed, const char *text, uint32_t length)
{
    return (struct ensio_kept){
        .hash = ensio_hash_bytes(seed, text, length), .text = text, .length = length, .seed = seed};
}

static int is_same(const struct ensio_kept *kept, const struct ensio_kept *like)
{
    return kept->hash == like->hash && kept->length == like->length && kept->seed == like->seed &&
           memcmp(kept->text, like->text, like->length) == 0;
}

/* The slot with the text, or the one for it. Two texts with the same hash stay two texts. */
static uint64_t *slot_for(struct ensio_kept_slots *slots, const struct ensio_kept *like)
{
    for (uint64_t at = like->hash;; at++) {
        uint64_t *const slot = &slots->kept[at & slots->mask], entry = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
        if (entry <= MOVED || (entry >> TAG_SHIFT == like->hash >> TAG_SHIFT && is_same(kept_in(entry), like)))
            return slot;
    }
}

struct ensio_kept *ensio_kept_find(const struct ensio_text_table *table, const struct ensio_kept *like)
{
    for (;;) {
        struct ensio_kept_slots *const slots = __atomic_load_n(&table->slots, __ATOMIC_ACQUIRE);
        const uint64_t entry = slots ? __atomic_load_n(slot_for(slots, like), __ATOMIC_ACQUIRE) : 0;
        if (entry > MOVED)
            return kept_in(entry);
        if (__atomic_load_n(&table->slots, __ATOMIC_ACQUIRE) == slots)
            return NULL;
    }
}

/* Makes larger slots, unless another thread has made them. Threads that add to the old ones wait for the lock. */
static int grow(struct ensio_text_table *table, struct ensio_kept_slots *old)
{
    struct ensio_held held = ensio_lock();
    const uint64_t before = old ? old->mask + 1 : 0, more = old ? 2 * before : FIRST_SLOTS;
    struct ensio_kept_slots *larger = NULL;
    if (table->slots == old && (larger = ensio_raw_memory(sizeof *larger + more * sizeof *larger->kept)) != NULL) {
        larger->mask = more - 1;
        for (uint64_t i = 0; i < before; i++) {
            uint64_t entry = 0;
            if (!__atomic_compare_exchange_n(&old->kept[i], &entry, MOVED, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
                *slot_for(larger, kept_in(entry)) = entry;
        }
        __atomic_store_n(&table->slots, larger, __ATOMIC_RELEASE);
        if (old)
            ensio_raw_empty(old, sizeof *old + before * sizeof *old->kept);
    }
    const int has_grown = table->slots != old;
    ensio_unlock(held);
    return has_grown;
}

struct ensio_kept *ensio_kept_add(struct ensio_text_table *table, struct ensio_kept *fresh)
{
    for (;;) {
        struct ensio_kept_slots *const slots = __atomic_load_n(&table->slots, __ATOMIC_ACQUIRE);
        const uint64_t count = __atomic_load_n(&table->count, __ATOMIC_RELAXED);
        if (!slots || 4 * count > 3 * slots->mask) {
            if (!grow(table, slots))
                return NULL;
            continue;
        }
        uint64_t *const slot = slot_for(slots, fresh), found = 0;
        if (__atomic_compare_exchange_n(slot, &found, entry_of(fresh), 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            if (__atomic_load_n(&table->slots, __ATOMIC_ACQUIRE) != slots)
                continue;
            __atomic_fetch_add(&table->count, 1, __ATOMIC_RELAXED);
            return fresh;
        }
        if (found == MOVED)
            ensio_unlock(ensio_lock());
        else if (is_same(kept_in(found), fresh))
            return kept_in(found);
    }
}

struct block {
    uint64_t used, bytes;
};
static struct block *current;

void *ensio_keep(uint32_t bytes)
{
    bytes = (bytes + 7) & ~7U;
    for (struct block *block = __atomic_load_n(&current, __ATOMIC_ACQUIRE);;) {
        const uint64_t at = block ? __atomic_fetch_add(&block->used, bytes, __ATOMIC_RELAXED) : 0;
        if (block && at + bytes <= block->bytes)
            return (char *)block + at;
        const uint64_t room = bytes + sizeof *block > BLOCK_BYTES ? bytes + sizeof *block : BLOCK_BYTES;
        struct block *const fresh = ensio_raw_memory(room);
        if (!fresh)
            return NULL;
        if (block) /* there are many texts */
            ensio_raw_populate(fresh, room);
        *fresh = (struct block){.used = sizeof *fresh, .bytes = room};
        if (__atomic_compare_exchange_n(&current, &block, fresh, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            block = fresh;
        else
            ensio_raw_unmap(fresh, room);
    }
}
