#include "descriptors.h"

#include "file_attributes.h"
#include "folders.h"
#include "names.h"
#include "paths.h"

#include <core/lock.h>
#include <core/private_files.h>
#include <core/rawsys.h>
#include <core/settings.h>
#include <core/recorder.h>
#include <spool/mounts.h>

#include <errno.h>
#include <string.h>

#define APART 4

uint32_t ensio_descriptor_end;
uint32_t *ensio_descriptors;
struct ensio_open_file *ensio_open_files;

static uint64_t unused;      /* below: the first entry of a list through `next`; above: the number of its changes */
static uint32_t taken_once;  /* open files that have been used at least once */
static uint32_t end_of_used; /* no descriptor from here on has been looked up */

int ensio_descriptors_begin(void)
{
    struct tables {
        uint32_t descriptors[ENSIO_DESCRIPTORS];
        struct ensio_open_file open_files[ENSIO_DESCRIPTORS + ENSIO_LEFT_OUT + 1];
    } *const tables = ensio_raw_memory(sizeof *tables);
    if (!tables)
        return -1;
    ensio_descriptors = tables->descriptors;
    ensio_open_files = tables->open_files;
    ensio_descriptor_end = ENSIO_DESCRIPTORS;
    return 0;
}

/* The kernel's name for the open file of a descriptor; it does not begin with a slash if there is no path. The caller
 * holds the lock. */
static const char *path_in_kernel(int fd)
{
    static char path[ENSIO_PATH_ROOM + 1];
    path[ensio_descriptor_name(fd, path, ENSIO_PATH_ROOM)] = '\0';
    return path;
}

/* The index of the n-th open file that is taken, from 0. Consecutive ones lie more than a cache line apart, so that
 * threads that move the positions of different files share no line. */
static uint32_t nth_open_file(uint32_t n)
{
    return ENSIO_LEFT_OUT + 1 + n % (ENSIO_DESCRIPTORS / APART) * APART + n / (ENSIO_DESCRIPTORS / APART);
}

/* An unused entry, or 0. A signal handler or another thread may take and release entries between any two
 * instructions; the count of changes then differs. */
static uint32_t take_open_file(void)
{
    uint64_t head = __atomic_load_n(&unused, __ATOMIC_ACQUIRE);
    while ((uint32_t)head) {
        const uint32_t next = __atomic_load_n(&ensio_open_files[(uint32_t)head].next, __ATOMIC_RELAXED);
        const uint64_t rest = ((head >> 32) + 1) << 32 | next;
        if (__atomic_compare_exchange_n(&unused, &head, rest, 0, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
            return (uint32_t)head;
    }
    uint32_t taken = __atomic_load_n(&taken_once, __ATOMIC_RELAXED);
    do
        if (taken == ENSIO_DESCRIPTORS)
            return 0;
    while (!__atomic_compare_exchange_n(&taken_once, &taken, taken + 1, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return nth_open_file(taken);
}

static void let_go(uint32_t open_file)
{
    if (open_file <= ENSIO_LEFT_OUT ||
        __atomic_sub_fetch(&ensio_open_files[open_file].references, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    uint64_t head = __atomic_load_n(&unused, __ATOMIC_RELAXED), with;
    do {
        __atomic_store_n(&ensio_open_files[open_file].next, (uint32_t)head, __ATOMIC_RELAXED);
        with = ((head >> 32) + 1) << 32 | open_file;
    } while (!__atomic_compare_exchange_n(&unused, &head, with, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

static void note_use(int fd)
{
    uint32_t end = __atomic_load_n(&end_of_used, __ATOMIC_RELAXED);
    while ((unsigned)fd >= end &&
           !__atomic_compare_exchange_n(&end_of_used, &end, (unsigned)fd + 1, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

static void set(int fd, uint32_t open_file)
{
    note_use(fd);
    let_go(__atomic_exchange_n(&ensio_descriptors[fd], open_file, __ATOMIC_ACQ_REL));
    ensio_folder_forget(fd);
}

static uint32_t bound(uint32_t file, uint16_t flags, int of_mpi)
{
    const uint32_t number = take_open_file();
    if (!number)
        return ENSIO_LEFT_OUT;
    struct ensio_open_file *open_file = &ensio_open_files[number];
    __atomic_store_n(&open_file->position, 0, __ATOMIC_RELAXED);
    open_file->file = file;
    __atomic_store_n(&open_file->flags, (uint8_t)flags, __ATOMIC_RELAXED);
    open_file->of_mpi = of_mpi != 0;
    __atomic_store_n(&open_file->user, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&open_file->references, 1, __ATOMIC_RELEASE);
    return number;
}

uint32_t ensio_descriptor_bind(int fd, uint32_t file, uint16_t flags, int of_mpi)
{
    if ((unsigned)fd >= ensio_descriptor_end)
        return ENSIO_LEFT_OUT;
    const uint32_t open_file = bound(file, flags, of_mpi);
    set(fd, open_file);
    return open_file;
}

/* Whether a path names an open file by its descriptor, whose meaning changes without any change of names. */
static int may_be_a_descriptor(const char *path)
{
    return strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/proc/", 6) == 0;
}

/* What the kernel says of an open file, without contacting a server: its kind; 0 without an answer. */
static uint32_t kind_of(int fd, uint64_t *mount)
{
#ifdef STATX_MNT_ID
    struct statx about;
    if (ENSIO_RAW(SYS_statx, fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_MNT_ID, &about) == 0) {
        *mount = about.stx_mask & STATX_MNT_ID ? about.stx_mnt_id : ENSIO_NO_MOUNT;
        return about.stx_mode & S_IFMT;
    }
#endif
    struct stat found;
    *mount = ENSIO_NO_MOUNT;
    return ENSIO_RAW(SYS_newfstatat, fd, "", &found, AT_EMPTY_PATH) == 0 ? found.st_mode & S_IFMT : 0;
}

/* What the kernel says of an open file: its entry, or ENSIO_LEFT_OUT. */
static uint32_t examined(int fd, const struct ensio_named *named, int flags, int of_mpi)
{
    const uint32_t changes = __atomic_load_n(&ensio_names_changed, __ATOMIC_ACQUIRE);
    uint64_t mount;
    if (named->left_out)
        return (flags & O_ACCMODE) != O_RDONLY && kind_of(fd, &mount) == S_IFREG ? ENSIO_LEFT_OUT_FILE : ENSIO_LEFT_OUT;
    const uint32_t kind = kind_of(fd, &mount);
    if (!kind || kind == S_IFIFO || kind == S_IFSOCK)
        return ENSIO_LEFT_OUT;
    const int has_position = kind == S_IFREG || kind == S_IFBLK;
    ensio_file_attributes(fd, named->file, mount, kind == S_IFREG);
    ensio_file_opened_with(named, flags);
    if (named->name)
        ensio_name_opened(named->name, kind == S_IFREG && !may_be_a_descriptor(ensio_file_path(named->file)), changes);
    return bound(named->file,
                 (uint16_t)((!has_position      ? ENSIO_NO_POSITION
                             : flags & O_APPEND ? ENSIO_ASK | ENSIO_APPENDS
                                                : 0) |
                            ensio_waits_for_device(flags)),
                 of_mpi);
}

uint32_t ensio_descriptor_opened(int fd, const struct ensio_named *named, int flags, int of_mpi)
{
    if ((unsigned)fd >= ensio_descriptor_end)
        return ENSIO_LEFT_OUT;
    const uint32_t open_file = examined(fd, named, flags, of_mpi);
    set(fd, open_file);
    return open_file;
}

/* Another thread may be closing the old descriptor. Its open file is taken only if it was in use throughout. */
static uint32_t shared(int fd)
{
    const uint32_t number = __atomic_load_n(&ensio_descriptors[fd], __ATOMIC_ACQUIRE);
    if (number <= ENSIO_LEFT_OUT)
        return number;
    uint32_t *const references = &ensio_open_files[number].references;
    uint32_t found = __atomic_load_n(references, __ATOMIC_RELAXED);
    do
        if (!found)
            return ENSIO_UNKNOWN;
    while (!__atomic_compare_exchange_n(references, &found, found + 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
    if (__atomic_load_n(&ensio_descriptors[fd], __ATOMIC_ACQUIRE) == number)
        return number;
    let_go(number);
    return ENSIO_UNKNOWN;
}

void ensio_descriptor_duplicated(int old, int copy)
{
    if ((unsigned)copy >= ensio_descriptor_end || old == copy)
        return;
    set(copy, (unsigned)old < ensio_descriptor_end ? shared(old) : ENSIO_UNKNOWN);
}

void ensio_descriptors_forget(unsigned first, unsigned last)
{
    const unsigned end = __atomic_load_n(&end_of_used, __ATOMIC_RELAXED);
    for (unsigned fd = first; fd <= last && fd < end; fd++)
        if (__atomic_load_n(&ensio_descriptors[fd], __ATOMIC_RELAXED) != ENSIO_UNKNOWN)
            set((int)fd, ENSIO_UNKNOWN);
}

void ensio_descriptors_shared(void)
{
    for (uint32_t n = 0; n < __atomic_load_n(&taken_once, __ATOMIC_RELAXED); n++)
        ensio_open_file_flag(&ensio_open_files[nth_open_file(n)], ENSIO_ASK);
}

void ensio_descriptors_store_files(void)
{
    for (uint32_t n = 0; n < __atomic_load_n(&taken_once, __ATOMIC_RELAXED); n++) {
        const struct ensio_open_file *open_file = &ensio_open_files[nth_open_file(n)];
        if (__atomic_load_n(&open_file->references, __ATOMIC_ACQUIRE))
            ensio_file_store(open_file->file);
    }
}

void ensio_descriptor_moved(int fd, int appends)
{
    uint32_t number = ensio_descriptor(fd);
    if (number <= ENSIO_LEFT_OUT)
        return;
    struct ensio_open_file *const open_file = &ensio_open_files[number];
    if (appends == 0)
        __atomic_fetch_and(&open_file->flags, (uint16_t)~ENSIO_APPENDS, __ATOMIC_RELAXED);
    ensio_open_file_flag(open_file, appends > 0 ? ENSIO_ASK | ENSIO_APPENDS : ENSIO_ASK);
}

int ensio_descriptor_of_failure(int fd, int error, uint32_t *file)
{
    struct ensio_held held = ensio_lock();
    const char *path = path_in_kernel(fd);
    const int is_told = *path == '/' ? strncmp(path, "/proc/", 6) != 0 && strncmp(path, "/sys/", 5) != 0
                                     : *path == '\0' && error == EBADF;
    *file = *path && is_told ? ensio_file_number(path) : 0;
    ensio_unlock(held);
    return is_told;
}

/* Binds a descriptor that is still unknown. Another thread may have opened it since, and knows better. */
static uint32_t bind_unknown(int fd, uint32_t open_file)
{
    uint32_t found = ENSIO_UNKNOWN;
    note_use(fd);
    if (__atomic_compare_exchange_n(&ensio_descriptors[fd], &found, open_file, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return open_file;
    let_go(open_file);
    return found;
}

/* An inherited descriptor may be shared with other processes, so the kernel is asked for its position. Between vfork
 * and exec, the descriptors belong to the child and this table to the parent. */
uint32_t ensio_descriptor_find(int fd)
{
    if (!ensio_owns_memory())
        return ENSIO_LEFT_OUT;
    struct ensio_held held = ensio_lock();
    uint32_t open_file = __atomic_load_n(&ensio_descriptors[fd], __ATOMIC_ACQUIRE);
    if (open_file == ENSIO_UNKNOWN) {
        const char *path = path_in_kernel(fd);
        open_file = ENSIO_LEFT_OUT;
        if (*path == '/') {
            const struct ensio_named named = ensio_name_of_kernel(path);
            open_file = examined(fd, &named, (int)ENSIO_RAW(SYS_fcntl, fd, F_GETFL), 0);
            if (open_file > ENSIO_LEFT_OUT)
                ensio_open_file_flag(&ensio_open_files[open_file], ENSIO_ASK);
        }
        if (strcmp(path, "anon_inode:[io_uring]") == 0)
            ensio_saw(ENSIO_ACCOUNT_URING);
        if (*path)
            open_file = bind_unknown(fd, open_file);
    }
    ensio_unlock(held);
    return open_file;
}

int64_t ensio_position_slow(int fd, struct ensio_open_file *open_file, int64_t moved)
{
    int error = errno;
    int64_t after = ensio_raw_position(fd);
    errno = error;
    return after < 0 ? -1 : after - (moved > 0 ? moved : 0);
}
