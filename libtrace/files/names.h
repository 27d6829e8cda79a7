/* names.h: what is known of the paths that the program has passed to calls, by their text as it was passed.
 *
 * Any thread and any signal handler finds and adds names without the lock. A path that was seen before, and a new one
 * below a known folder (folders.h), need no system call. A name is never moved or removed. */
#ifndef ENSIO_FILES_NAMES_H
#define ENSIO_FILES_NAMES_H

#include <core/recorder.h>
#include <core/text_table.h>

struct ensio_name {
    struct ensio_kept path; /* its seed: what the path is relative to (folders.h) */
    uint32_t file;          /* its number; 0: calls on it are not recorded */

    /* The following members change. */
    uint32_t spool;   /* number of the spool that holds the file's path */
    uint32_t opened;  /* generation of the process that has opened it, and stored the file's attributes */
    uint32_t regular; /* the number of changes (below) at which it was a regular file */
    uint32_t synced;  /* generation of the process that stored that it opened the file with O_DSYNC or O_DIRECT */
};

/* The name of a path, if its number is known and this process's spool holds it; NULL otherwise. */
struct ensio_name *ensio_name_find(int folder, const char *path, uint32_t length);

/* The number of a path; left_out: calls on it are not recorded. `name`: the path's name, NULL if it is not kept. */
struct ensio_named {
    struct ensio_name *name;
    uint32_t file;
    int left_out;
};
struct ensio_named ensio_name_look_up(int folder, const char *path, uint32_t length);

/* The same for an absolute path without a name. */
struct ensio_named ensio_name_of_kernel(const char *path);

/* The number of calls so far that removed or renamed something, from 1. A path means another file afterwards, perhaps
 * of another kind. */
extern uint32_t ensio_names_changed;

static inline void ensio_names_change(void)
{
    __atomic_fetch_add(&ensio_names_changed, 1, __ATOMIC_RELEASE);
}

/* Whether the program's next open of this path gets a regular file, as far as this process can know. */
static inline int ensio_name_is_regular(const struct ensio_name *name)
{
    return __atomic_load_n(&name->regular, __ATOMIC_RELAXED) == __atomic_load_n(&ensio_names_changed, __ATOMIC_RELAXED);
}

/* Whether this process has opened the file, and so stored its attributes. */
static inline int ensio_name_was_opened(const struct ensio_name *name)
{
    return __atomic_load_n(&name->opened, __ATOMIC_RELAXED) ==
           __atomic_load_n(&ensio_process->generation, __ATOMIC_RELAXED);
}

/* Whether this process has stored that it opened the file with O_DSYNC or O_DIRECT. */
static inline int ensio_name_was_synced(const struct ensio_name *name)
{
    return __atomic_load_n(&name->synced, __ATOMIC_RELAXED) ==
           __atomic_load_n(&ensio_process->generation, __ATOMIC_RELAXED);
}

/* The program has opened it. */
void ensio_name_opened(struct ensio_name *name, int is_regular, uint32_t changes);

#endif
