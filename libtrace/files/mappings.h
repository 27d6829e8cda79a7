/* mappings.h: which files the program has mapped into its memory, and where.
 *
 * Looking an address up takes no lock, so that unmapping memory that belongs to no file costs next to nothing. There is
 * room for so many ranges; of those beyond, neither msync nor munmap is recorded.
 */
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

extern uint32_t ensio_mappings; /* how many ranges there are */

/* The first range of a file that these addresses touch, cut to them. Returns whether there is one. */
int ensio_mapping_search(const void *at, size_t bytes, struct ensio_mapping *found);

static inline int ensio_mapping_find(const void *at, size_t bytes, struct ensio_mapping *found)
{
    return ENSIO_UNLIKELY(__atomic_load_n(&ensio_mappings, __ATOMIC_RELAXED)) && ensio_mapping_search(at, bytes, found);
}

/* Addresses now stand for a file, whatever they stood for before. Keeps errno; takes the lock, as the next one does. */
void ensio_mapping_add(const void *at, size_t bytes, int64_t offset, uint32_t file);

/* Addresses stand for no file any more. Before an munmap, not after: another thread may be given them at once. */
void ensio_mapping_cut(const void *at, size_t bytes);

/* Sees to it that the files of all ranges are in this process's spool. The caller holds the lock. */
void ensio_mappings_store_files(void);

#endif
