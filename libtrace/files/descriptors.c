#include "descriptors.h"

#include "file_attributes.h"
#include "paths.h"

#include <core/bounded_string.h>
#include <core/lock.h>
#include <core/rawsys.h>
#include <core/settings.h>
#include <core/recorder.h>

#include <string.h>

#define APART 4

uint32_t ensio_descriptors[ENSIO_DESCRIPTORS];
/* one for each descriptor, and the two reserved values */
struct ensio_open_file ensio_open_files[ENSIO_DESCRIPTORS + 2];

static uint32_t first_free;  /* a list through `references` */
static uint32_t taken_once;  /* open files that have been used at least once */
static unsigned end_of_used; /* no descriptor from here on has been looked up */

static char path_buffer[2 * ENSIO_PATH_ROOM];

/* The kernel's name for the open file of a descriptor, in path_buffer; NULL if it has no path (a socket, a pipe). */
static const char *path_in_kernel(int fd)
{
    char link[64];
    struct ensio_string name = ensio_string_in(link, sizeof link);
    ensio_add(&name, "/proc/self/fd/");
    ensio_add_number(&name, (unsigned)fd);
    long length = ensio_raw_readlink(link, path_buffer, ENSIO_PATH_ROOM);
    path_buffer[length > 0 ? length : 0] = '\0';
    return path_buffer[0] == '/' ? path_buffer : NULL;
}

const char *ensio_absolute_path(int folder, const char *path, uint32_t bytes)
{
    const char *const end = path + bytes;
    struct ensio_string whole = ensio_string_in(path_buffer, sizeof path_buffer);
    if (!bytes || *path != '/') {
        long length = folder == AT_FDCWD       ? ENSIO_RAW(SYS_getcwd, path_buffer, ENSIO_PATH_ROOM) - 1
                      : path_in_kernel(folder) ? (long)strlen(path_buffer)
                                               : 0;
        if (length <= 0) {
            ensio_add(&whole, "/(unknown folder)");
            length = whole.length;
        }
        whole.length = (uint32_t)length;
    }
    while (path < end) {
        if (*path == '/') {
            path++;
            continue;
        }
        const char *slash = memchr(path, '/', (size_t)(end - path));
        uint32_t part = (uint32_t)((slash ? slash : end) - path);
        if (part != 1 || *path != '.') {
            if (!whole.length || whole.text[whole.length - 1] != '/')
                ensio_add_bytes(&whole, "/", 1);
            ensio_add_bytes(&whole, path, part);
        }
        path += part;
    }
    if (!whole.length)
        ensio_add(&whole, "/");
    return path_buffer;
}

/* The index of the n-th open file that is taken, from 0. Consecutive ones lie more than a cache line apart, so that
 * threads that move the positions of different files share no line. */
static uint32_t nth_open_file(uint32_t n)
{
    return ENSIO_LEFT_OUT + 1 + n % (ENSIO_DESCRIPTORS / APART) * APART + n / (ENSIO_DESCRIPTORS / APART);
}

static uint32_t take_open_file(void)
{
    uint32_t taken = first_free;
    if (taken)
        first_free = ensio_open_files[taken].references;
    else
        taken = nth_open_file(taken_once++);
    return taken;
}

static void let_go(uint32_t open_file)
{
    if (open_file <= ENSIO_LEFT_OUT || --ensio_open_files[open_file].references > 0)
        return;
    ensio_open_files[open_file].references = first_free;
    first_free = open_file;
}

static void set(int fd, uint32_t open_file)
{
    if ((unsigned)fd >= end_of_used)
        end_of_used = (unsigned)fd + 1;
    let_go(ensio_descriptors[fd]);
    __atomic_store_n(&ensio_descriptors[fd], open_file, __ATOMIC_RELEASE);
}

uint32_t ensio_descriptor_opened(int fd, const char *path, int flags)
{
    if ((unsigned)fd >= ENSIO_DESCRIPTORS)
        return ENSIO_LEFT_OUT;
    struct stat found;
    long known = ENSIO_RAW(SYS_newfstatat, fd, "", &found, AT_EMPTY_PATH);
    uint32_t open_file = ENSIO_LEFT_OUT;
    if (!ensio_listed(path, ensio_settings.exclude) && known == 0 && !S_ISFIFO(found.st_mode) &&
        !S_ISSOCK(found.st_mode)) {
        int has_position = S_ISREG(found.st_mode) || S_ISBLK(found.st_mode);
        open_file = take_open_file();
        ensio_open_files[open_file] = (struct ensio_open_file){
            .file = ensio_file_number(path),
            .flags = (uint16_t)(!has_position      ? ENSIO_NO_POSITION
                                : flags & O_APPEND ? ENSIO_ASK | ENSIO_APPENDS
                                                   : 0),
            .references = 1,
        };
        ensio_file_attributes(fd, ensio_open_files[open_file].file, path, S_ISREG(found.st_mode));
    }
    set(fd, open_file);
    return open_file;
}

void ensio_descriptor_duplicated(int old, int copy)
{
    if ((unsigned)copy >= ENSIO_DESCRIPTORS || old == copy)
        return;
    uint32_t open_file = (unsigned)old < ENSIO_DESCRIPTORS ? ensio_descriptors[old] : ENSIO_UNKNOWN;
    if (open_file > ENSIO_LEFT_OUT)
        ensio_open_files[open_file].references++;
    set(copy, open_file);
}

void ensio_descriptors_forget(unsigned first, unsigned last)
{
    for (unsigned fd = first; fd <= last && fd < end_of_used; fd++)
        if (ensio_descriptors[fd] != ENSIO_UNKNOWN)
            set((int)fd, ENSIO_UNKNOWN);
}

void ensio_descriptors_shared(void)
{
    for (uint32_t n = 0; n < taken_once; n++)
        ensio_open_files[nth_open_file(n)].flags |= ENSIO_ASK;
}

void ensio_descriptors_store_files(void)
{
    for (uint32_t n = 0; n < taken_once; n++) {
        const struct ensio_open_file *open_file = &ensio_open_files[nth_open_file(n)];
        if (open_file->references)
            ensio_file_store(open_file->file);
    }
}

void ensio_descriptor_moved(int fd, int appends)
{
    uint32_t open_file = ensio_descriptor(fd);
    if (open_file <= ENSIO_LEFT_OUT)
        return;
    uint16_t flags = ensio_open_files[open_file].flags | ENSIO_ASK;
    if (appends >= 0)
        flags = (uint16_t)((flags & ~ENSIO_APPENDS) | (appends ? ENSIO_APPENDS : 0));
    ensio_open_files[open_file].flags = flags;
}

/* An inherited descriptor may be shared with other processes, so the kernel is asked for its position. Between vfork
 * and exec, the descriptors belong to the child and this table to the parent. */
uint32_t ensio_descriptor_find(int fd)
{
    if (!ensio_owns_memory())
        return ENSIO_LEFT_OUT;
    struct ensio_held held = ensio_lock();
    uint32_t open_file = ensio_descriptors[fd];
    if (open_file == ENSIO_UNKNOWN) {
        const char *path = path_in_kernel(fd);
        open_file = ENSIO_LEFT_OUT;
        if (path)
            open_file = ensio_descriptor_opened(fd, path, (int)ENSIO_RAW(SYS_fcntl, fd, F_GETFL));
        else if (path_buffer[0])
            set(fd, ENSIO_LEFT_OUT);
        if (open_file > ENSIO_LEFT_OUT)
            ensio_open_files[open_file].flags |= ENSIO_ASK;
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
