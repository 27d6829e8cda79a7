/* working_folder.h: the name of the working folder, for relative paths, without a system call for each of them. */
#ifndef ENSIO_FILES_WORKING_FOLDER_H
#define ENSIO_FILES_WORKING_FOLDER_H

#include <core/recorder.h>

/* Identifiers of working folders, as names.h uses them. The same identifier always means the same text. */
#define ENSIO_NO_FOLDER 0   /* not known: ask the kernel */
#define ENSIO_ROOT_FOLDER 1 /* of absolute paths */

extern uint64_t ensio_working_folder;          /* below: its identifier; above: the number of changes */
extern uint32_t ensio_working_folder_changing; /* calls that are changing it, in any thread */

/* The identifier of the working folder, or ENSIO_NO_FOLDER. */
static inline uint32_t ensio_folder_known(void)
{
    if (ENSIO_UNLIKELY(__atomic_load_n(&ensio_working_folder_changing, __ATOMIC_RELAXED)))
        return ENSIO_NO_FOLDER;
    return (uint32_t)__atomic_load_n(&ensio_working_folder, __ATOMIC_RELAXED);
}

/* Asks the kernel for the working folder. Sets its identifier; returns its length, or at most 0 without an answer. The
 * caller holds the lock. */
long ensio_folder_read(char *to, uint32_t room, uint32_t *id);

/* The working folder, or its name, may have changed. */
void ensio_folder_forget(void);

/* Around a call that changes it. A handler that jumps out of the call leaves it changing, so the kernel is asked for
 * each relative path from then on. */
void ensio_folder_change_begin(void);
void ensio_folder_change_end(void);

/* From now on, the kernel is asked for each relative path: threads may have separate working folders, or another
 * process may change this one's. */
void ensio_folder_never_known(void);

#endif
