/* folders.h: the names of the folders that relative paths begin in, without a system call for each path. */
#ifndef ENSIO_FILES_FOLDERS_H
#define ENSIO_FILES_FOLDERS_H

#include <core/bounded_string.h>
#include <core/recorder.h>
#include <core/text_table.h>

/* Identifiers of folders, as names.h uses them. The same identifier always means the same text. */
#define ENSIO_NO_FOLDER 0   /* not known: ask the kernel */
#define ENSIO_ROOT_FOLDER 1 /* of absolute paths */

/* The identifier of a folder by its descriptor, or AT_FDCWD; ENSIO_NO_FOLDER if it is not known. */
uint32_t ensio_folder_known(int fd);

/* The name of a known folder; NULL for ENSIO_NO_FOLDER. */
const struct ensio_kept *ensio_folder_name(uint32_t id);

/* Any folder, or its name, may have changed. */
void ensio_folders_forget(void);

/* The same for the folder of a descriptor. */
void ensio_folder_forget(int fd);

/* Other processes rename folders too, so that names are not kept for long. `now`: in ticks. */
extern uint64_t ensio_folders_due;
static inline void ensio_folders_age(uint64_t now)
{
    if (ENSIO_UNLIKELY(now > __atomic_load_n(&ensio_folders_due, __ATOMIC_RELAXED))) {
        __atomic_store_n(&ensio_folders_due, now + (1U << 26), __ATOMIC_RELAXED); /* some hundredths of a second */
        ensio_folders_forget();
    }
}

/* Around a call that changes the working folder. A handler that jumps out of the call leaves it changing, so the kernel
 * is asked for each relative path from then on. */
void ensio_folder_change_begin(void);
void ensio_folder_change_end(void);

/* From now on, the kernel is asked for each relative path: threads may have separate folders or descriptors, or another
 * process may change this one's. */
void ensio_folder_never_known(void);

/* Appends a path to the name of a folder, without empty parts and dots. */
void ensio_path_below(struct ensio_string *folder, const char *path, uint32_t bytes);

/* The absolute path for the `bytes` bytes at `path`, relative to a folder's descriptor. Asks the kernel for the folder.
 * The next call reuses the buffer. `relative_to`: NULL, or receives the folder's identifier. The caller holds the
 * lock. */
const char *ensio_absolute_path(int folder, const char *path, uint32_t bytes, uint32_t *relative_to);

#endif
