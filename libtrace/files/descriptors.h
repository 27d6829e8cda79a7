/* descriptors.h: the open file behind each file descriptor of the program.
 *
 * As in the kernel, descriptors refer to open files, which have a position; dup makes two descriptors refer to one
 * open file. A lookup takes two loads. A descriptor that no wrapper saw being opened is looked up in /proc at its
 * first use. */
#ifndef ENSIO_FILES_DESCRIPTORS_H
#define ENSIO_FILES_DESCRIPTORS_H

#include <core/recorder.h>

#define ENSIO_DESCRIPTORS (1 << 16) /* calls on descriptors from here on are not recorded */

extern uint32_t ensio_descriptor_end; /* ENSIO_DESCRIPTORS; 0 until there are tables */

#define ENSIO_UNKNOWN 0       /* not looked up yet */
#define ENSIO_LEFT_OUT_FILE 1 /* the same as the next, and writes make a regular file dirty */
#define ENSIO_LEFT_OUT 2

/* Open file flags. */
#define ENSIO_ASK 1         /* others may move the position (another process, O_APPEND): ask the kernel */
#define ENSIO_NO_POSITION 2 /* a terminal, a character device */
#define ENSIO_APPENDS 4     /* every write goes to the end of the file */
/* ENSIO_WAITS_FOR_DEVICE: as in the events of writes */

#define ENSIO_SEVERAL 1 /* users of an open file */

struct ensio_open_file {
    int64_t position;
    uint32_t file;
    uint8_t flags;
    uint8_t of_mpi;      /* opened inside an MPI call: calls on it belong to MPI */
    uint16_t user;       /* of a stream (layers/stdio): a hash of the stream and thread that use it, 0: none did */
    uint32_t references; /* descriptors that refer to it; 0: unused */
    uint32_t next;       /* of an unused entry: the next unused one. A late call must not change it. */
    uint32_t left_at;    /* of a stream: where in its buffer the last call left it */
    int32_t ahead;       /* bytes that were counted, and that inline code has not moved yet */
};

extern uint32_t *ensio_descriptors;
extern struct ensio_open_file *ensio_open_files; /* one for each descriptor, and the reserved values */

/* Maps the tables: 0, or -1 without memory. */
int ensio_descriptors_begin(void);

/* Sets a flag. Another thread may bind the entry to another file meanwhile. */
static inline void ensio_open_file_flag(struct ensio_open_file *open_file, uint16_t flag)
{
    __atomic_fetch_or(&open_file->flags, flag, __ATOMIC_RELAXED);
}

/* Finds the open file of a descriptor, or ENSIO_LEFT_OUT. Takes the lock. */
uint32_t ensio_descriptor_find(int fd);

/* The open file of a descriptor. At or below ENSIO_LEFT_OUT, its calls are not recorded. */
static inline uint32_t ensio_descriptor(int fd)
{
    if (ENSIO_UNLIKELY((unsigned)fd >= ensio_descriptor_end))
        return ENSIO_LEFT_OUT;
    uint32_t open_file = __atomic_load_n(&ensio_descriptors[fd], __ATOMIC_RELAXED);
    return ENSIO_LIKELY(open_file != ENSIO_UNKNOWN) ? open_file : ensio_descriptor_find(fd);
}

/* After a write failed on a descriptor whose calls are not recorded: whether to record this one, because the descriptor
 * is not open, or is open on a file, except those of the kernel in /proc and /sys. Sets the file; 0: none. Takes the
 * lock. */
int ensio_descriptor_of_failure(int fd, int error, uint32_t *file);

/* A call that is not recorded moves the position of a descriptor's open file: the kernel is asked for it from now on.
 * `appends`: whether writes go to the end of the file from now on; -1: unchanged. */
void ensio_descriptor_moved(int fd, int appends);

/* The following four functions need no lock. */

/* A descriptor was opened: its file, and its flags (ENSIO_ASK ...). Returns the open file, or ENSIO_LEFT_OUT. */
uint32_t ensio_descriptor_bind(int fd, uint32_t file, uint16_t flags, int of_mpi);

/* A descriptor was opened, with the flags of open(2). Asks the kernel what it is. Returns the open file, or which of
 * the two left out it is. */
struct ensio_named;
uint32_t ensio_descriptor_opened(int fd, const struct ensio_named *named, int flags, int of_mpi);

/* A descriptor is a duplicate of another. */
void ensio_descriptor_duplicated(int old, int copy);

/* These descriptors are being closed, or may refer to other files from now on. */
void ensio_descriptors_forget(unsigned first, unsigned last);

/* The caller of the following functions holds the lock. */

/* Another process shares the open files and may move their positions. */
void ensio_descriptors_shared(void);

/* Stores the paths of all open files in this process's spool. */
void ensio_descriptors_store_files(void);

/* The position at which a call without an explicit offset moved `moved` bytes. Advances the position. */
int64_t ensio_position_slow(int fd, struct ensio_open_file *open_file, int64_t moved);

static inline int64_t ensio_position(int fd, struct ensio_open_file *open_file, int64_t moved)
{
    const uint16_t flags = __atomic_load_n(&open_file->flags, __ATOMIC_RELAXED);
    if (ENSIO_UNLIKELY(flags & ENSIO_NO_POSITION))
        return -1;
    if (ENSIO_UNLIKELY(flags & ENSIO_ASK))
        return ensio_position_slow(fd, open_file, moved);
    int64_t position = __atomic_load_n(&open_file->position, __ATOMIC_RELAXED);
    if (moved > 0)
        __atomic_store_n(&open_file->position, position + moved, __ATOMIC_RELAXED);
    return position;
}

#endif
