/* mappings.h: the files that the program has mapped into memory, and where.
 *
 * Looking an address up takes no lock, so unmapping anonymous memory costs next to nothing. The table has a fixed
 * number of ranges; msync and munmap of further ones are not recorded. */
#ifndef ENSIO_FILES_MAPPINGS_H
#define ENSIO_FILES_MAPPINGS_H

#include <core/recorder.h>

#define ENSIO_MAPPINGS 4096

struct ensio_mapping {
    uintptr_t first; /* address */
    uintptr_t end;   /* the address after the last */
    int64_t offset;  /* in the file, of the first address */
    uint32_t file;
};

extern uint32_t ensio_mappings; /* number of ranges */

/* The first range of a file that these addresses touch, clipped to them. Returns whether there is one. */
int ensio_mapping_search(const void *at, size_t bytes, struct ensio_mapping *found);

static inline int ensio_mapping_find(const void *at, size_t bytes, struct ensio_mapping *found)
{
    return ENSIO_UNLIKELY(__atomic_load_n(&ensio_mappings, __ATOMIC_RELAXED)) && ensio_mapping_search(at, bytes, found);
}

/* These addresses now map a file, whatever they mapped before. Preserves errno; takes the lock, as the next function
 * does. */
void ensio_mapping_add(const void *at, size_t bytes, int64_t offset, uint32_t file);

/* These addresses no longer map a file. Call this before munmap: another thread may get the addresses immediately after
 * it. */
void ensio_mapping_cut(const void *at, size_t bytes);

/* Stores the paths of all mapped files in this process's spool. The caller holds the lock. */
void ensio_mappings_store_files(void);

#endif
