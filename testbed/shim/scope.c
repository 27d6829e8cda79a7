#include "scope.h"

#include <core/rawsys.h>
#include <core/bounded_string.h>

#include <limits.h>
#include <string.h>
#include <sys/uio.h>

#define MOST_ROOTS 32

/* A folder with two names, if the one given by the user contains symbolic links. */
static struct root {
    char path[PATH_MAX];
    uint32_t length;
    uint32_t number;
    int is_out; /* an excluded folder */
} roots[MOST_ROOTS];
static int root_count;

static const char deleted[] = " (deleted)";

static void add_root(const char *path, uint32_t length, uint32_t number, int is_out)
{
    while (length > 1 && path[length - 1] == '/')
        length--;
    if (!length || path[0] != '/' || length >= PATH_MAX || root_count == MOST_ROOTS)
        return;
    struct root *root = &roots[root_count++];
    memcpy(root->path, path, length);
    root->path[length] = '\0';
    root->length = length == 1 ? 0 : length; /* every path continues "/" */
    root->number = number;
    root->is_out = is_out;
}

/* The kernel's name of an open file; its length, or minus an errno. */
static long path_in_kernel(int fd, char *path)
{
    char link[64];
    struct ensio_string name = ensio_string_in(link, sizeof link);
    ensio_add(&name, "/proc/self/fd/");
    ensio_add_number(&name, (unsigned)fd);
    const long length = ensio_raw_readlink(link, path, PATH_MAX - 1);
    path[length > 0 ? length : 0] = '\0';
    return length;
}

int shim_scope_read(const char *list)
{
    const int error = errno;
    uint32_t number = 0;
    for (const char *at = list; at && *at; number++) {
        const int is_out = *at == '!';
        at += is_out;
        const uint32_t length = (uint32_t)strcspn(at, ":");
        const int count = root_count;
        char real[PATH_MAX];
        add_root(at, length, number, is_out);
        if (root_count > count) {
            const int fd = ensio_raw_open(roots[root_count - 1].path, O_PATH | O_DIRECTORY, 0);
            const long real_length = fd < 0 ? 0 : path_in_kernel(fd, real);
            if (fd >= 0)
                ensio_raw_close(fd);
            if (real_length > 0 && strcmp(real, roots[root_count - 1].path) != 0)
                add_root(real, (uint32_t)real_length, number, is_out);
        }
        at += length;
        at += *at == ':';
    }
    errno = error;
    return root_count;
}

/* Whether an absolute path lies in one of the folders, and the key of its file. */
static int is_under(const char *path, uint64_t *key)
{
    int under = 0;
    for (int i = 0; i < root_count; i++) {
        const struct root *root = &roots[i];
        if (strncmp(path, root->path, root->length) != 0 || (path[root->length] != '/' && path[root->length] != '\0'))
            continue;
        if (root->is_out)
            return 0;
        if (!under)
            *key = (ensio_hash(path + root->length) + root->number) | 1; /* key 0: not a file */
        under = 1;
    }
    return under;
}

int shim_descriptor_in_scope(int fd, struct shim_file *file)
{
    const int error = errno;
    char path[PATH_MAX];
    struct stat found;
    int under = 0;
    if (fd >= 0 && ENSIO_RAW(SYS_fstat, fd, &found) == 0 && (S_ISREG(found.st_mode) || S_ISDIR(found.st_mode))) {
        const long length = path_in_kernel(fd, path), end = length - (long)(sizeof deleted - 1);
        if (found.st_nlink == 0 && end > 0 && strcmp(path + end, deleted) == 0)
            path[end] = '\0';
        under = length > 0 && is_under(path, &file->key);
        file->mode = found.st_mode;
        file->size = found.st_size;
        file->block_bytes = found.st_blksize;
    }
    errno = error;
    return under;
}

size_t shim_peek(void *to, const void *from, size_t bytes)
{
    const int error = errno;
    const struct iovec there = {.iov_base = (void *)(uintptr_t)from, .iov_len = bytes};
    const struct iovec here = {.iov_base = to, .iov_len = bytes};
    const long got = ENSIO_RAW(SYS_process_vm_readv, (long)ensio_raw_pid(), &here, 1UL, &there, 1UL, 0UL);
    errno = error;
    if (got == -EPERM || got == -ENOSYS) { /* a container may forbid it */
        memcpy(to, from, bytes);
        return bytes;
    }
    return got < 0 ? 0 : (size_t)got;
}

/* Copies a path from the program's memory; its length, or -1. It copies page by page, because memory after the end may
 * be unmapped. */
static long copied(char *to, const char *from)
{
    size_t held = 0;
    while (held < PATH_MAX) {
        size_t piece = 256 - ((uintptr_t)from + held) % 256;
        if (piece > PATH_MAX - held)
            piece = PATH_MAX - held;
        if (shim_peek(to + held, from + held, piece) != piece)
            return -1;
        const char *end = memchr(to + held, '\0', piece);
        if (end)
            return end - to;
        held += piece;
    }
    return -1;
}

/* Appends the components of `path`: ".." removes one, "." none. */
static void add_parts(struct ensio_string *whole, const char *path)
{
    while (*path) {
        const uint32_t part = (uint32_t)strcspn(path, "/");
        if (part == 2 && path[0] == '.' && path[1] == '.') {
            while (whole->length && whole->text[--whole->length] != '/')
                ;
            whole->text[whole->length] = '\0';
        } else if (part && !(part == 1 && *path == '.')) {
            ensio_add(whole, "/");
            ensio_add_bytes(whole, path, part);
        }
        path += part;
        path += *path == '/';
    }
}

int shim_path_in_scope(int folder, const char *path, uint64_t *key)
{
    const int error = errno;
    char given[PATH_MAX], start[PATH_MAX], absolute[2 * PATH_MAX];
    struct ensio_string whole = ensio_string_in(absolute, sizeof absolute);
    long length = copied(given, path);
    if (length > 0 && given[0] != '/') {
        length = folder == AT_FDCWD ? ENSIO_RAW(SYS_getcwd, start, sizeof start) : path_in_kernel(folder, start);
        if (length > 0)
            add_parts(&whole, start);
    }
    int under = 0;
    if (length > 0) {
        add_parts(&whole, given);
        under = is_under(absolute, key);
    }
    errno = error;
    return under;
}
