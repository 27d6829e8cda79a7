/* Calls with pointers that are bad, that run over the end of readable memory, or that mean the memory of the call's own
 * result: hostile_calls, in a folder for its own use. Says on a line of each: the call, what it was given, its result,
 * its errno. */
#define _GNU_SOURCE
#include <aio.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE 4096
#define KEPT "a.data"

static char *end;    /* readable and writable memory ends here */
static char *frozen; /* a page to read only */
static char *behind; /* a mapped page behind the end of its file */
static int data;     /* a descriptor to read and write */

static void say(const char *call, const char *given, long result)
{
    printf("%s, %s: %ld, %d\n", call, given, result, errno);
}

#define TRY(given, call) (errno = 0, say(#call, given, (long)(call)))

/* Memory before the end: `bytes` of it, filled, without an end of the text. */
static char *unended(size_t bytes)
{
    return memset(end - bytes, 'u', bytes);
}

static char *ended(const char *text)
{
    return strcpy(end - strlen(text) - 1, text);
}

/* The path of `name`, as long as it takes, with its end at the end of the memory. */
static char *long_path(const char *name, size_t length)
{
    char *path = end - length - 1;
    memset(path, '/', length);
    path[0] = '.';
    strcpy(path + length - strlen(name), name);
    return path;
}

static int closed(int fd)
{
    const int error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    return fd;
}

static int stream_closed(FILE *stream)
{
    const int error = errno;
    if (stream)
        fclose(stream);
    errno = error;
    return stream ? 0 : -1;
}

static int folder_closed(DIR *folder)
{
    const int error = errno;
    if (folder)
        closedir(folder);
    errno = error;
    return folder ? 0 : -1;
}

static int reopened(const char *path)
{
    FILE *stream = fopen(KEPT, "r");
    return stream_closed(freopen(path, "r", stream));
}

/* All calls on a path, each made to fail. `library`: also those that libc itself looks at. */
static void on_path(const char *given, const char *path, int library)
{
    static struct stat status;
    static struct stat64 status64;
    static struct statx more;
    static char to[64];
    char *none[] = {NULL};
    TRY(given, closed(open(path, O_RDONLY)));
    TRY(given, closed(open64(path, O_RDONLY)));
    TRY(given, closed(open(path, O_TMPFILE | O_RDONLY, 0600)));
    TRY(given, closed(openat(AT_FDCWD, path, O_RDONLY)));
    TRY(given, closed(openat(999, path, O_RDONLY)));
    TRY(given, closed(open(path, O_CREAT | O_DIRECTORY | O_TMPFILE, 0600)));
    TRY(given, stat(path, &status));
    TRY(given, stat64(path, &status64));
    TRY(given, lstat(path, &status));
    TRY(given, stat(path, (struct stat *)8));
    TRY(given, fstatat(AT_FDCWD, path, &status, 0));
    TRY(given, fstatat(AT_FDCWD, path, &status, 1 << 30));
    TRY(given, statx(AT_FDCWD, path, 0, STATX_ALL, &more));
    TRY(given, statx(999, path, 0, STATX_ALL, &more));
    TRY(given, statx(AT_FDCWD, path, 1 << 30, STATX_ALL, &more));
    TRY(given, access(path, R_OK));
    TRY(given, access(path, 99));
    TRY(given, eaccess(path, R_OK));
    TRY(given, faccessat(AT_FDCWD, path, R_OK, 1 << 30));
    TRY(given, unlink(path));
    TRY(given, unlinkat(AT_FDCWD, path, 1 << 14));
    TRY(given, unlinkat(AT_FDCWD, path, AT_REMOVEDIR));
    TRY(given, rename(path, "missing/x"));
    TRY(given, rename("missing/x", path));
    TRY(given, rename(path, path));
    TRY(given, renameat(999, path, AT_FDCWD, "x"));
    TRY(given, renameat2(AT_FDCWD, path, AT_FDCWD, path, 1U << 20));
    TRY(given, renameat2(AT_FDCWD, "missing/x", 999, path, RENAME_NOREPLACE));
    TRY(given, mkdir(path, 0700));
    TRY(given, mkdirat(999, path, 0700));
    TRY(given, rmdir(path));
    TRY(given, remove(path));
    TRY(given, link(path, "missing/x"));
    TRY(given, link("missing/x", path));
    TRY(given, linkat(AT_FDCWD, "missing/x", AT_FDCWD, path, 0));
    TRY(given, linkat(AT_FDCWD, KEPT, AT_FDCWD, path, 1 << 30));
    TRY(given, linkat(999, "x", 999, path, 0));
    TRY(given, symlink("", path));
    TRY(given, symlink(path, "missing/x"));
    TRY(given, symlinkat("", AT_FDCWD, path));
    TRY(given, symlinkat("target", 999, path));
    TRY(given, readlink(path, to, sizeof to));
    TRY(given, readlink(path, to, 0));
    TRY(given, readlinkat(999, path, to, sizeof to));
    TRY(given, chmod(path, 0600));
    TRY(given, fchmodat(AT_FDCWD, path, 0600, 1 << 30));
    TRY(given, truncate(path, 0));
    TRY(given, truncate(path, -1));
    TRY(given, stream_closed(fopen(path, "r")));
    TRY(given, stream_closed(fopen(path, "no mode")));
    TRY(given, stream_closed(fopen64(path, "r")));
    TRY(given, reopened(path));
    TRY(given, execve(path, none, none));
    if (library)
        TRY(given, folder_closed(opendir(path)));
}

static void bad_paths(void)
{
    on_path("nothing", NULL, 0);
    on_path("address 1", (char *)1, 0);
    on_path("memory that ends", end, 0);
    on_path("the kernel's memory", (char *)-PAGE, 0);
    on_path("no address", (char *)0x8000000000000000, 0);
    on_path("memory behind a file", behind, 0);
    on_path("1 byte without an end", unended(1), 1);
    on_path("100 bytes without an end", unended(100), 1);
    on_path("4095 bytes without an end", unended(4095), 1);
    on_path("4096 bytes without an end", unended(4096), 1);
    on_path("4097 bytes without an end", unended(4097), 1);
    on_path("10000 bytes without an end", unended(10000), 1);
    on_path("4096 bytes and an end", long_path("missing", 4096), 1);
    on_path("8000 bytes and an end", long_path("missing", 8000), 1);
    on_path("a missing file", ended("missing/file"), 1);
    on_path("an empty path", ended(""), 1);
}

static void good_paths(void)
{
    struct stat status;
    TRY("4095 bytes and an end", closed(open(long_path(KEPT, 4095), O_RDONLY)));
    TRY("4095 bytes and an end", stat(long_path(KEPT, 4095), &status));
    TRY("4095 bytes and an end", stream_closed(fopen(long_path(KEPT, 4095), "r")));
    TRY("at the end of memory", closed(open(ended(KEPT), O_RDONLY)));
    TRY("at the end of memory", access(ended(KEPT), R_OK));
    TRY("at the end of memory", chmod(ended(KEPT), 0600));
    TRY("at the end of memory", folder_closed(opendir(ended("."))));
    char *name = ended("made.XXXXXX");
    TRY("at the end of memory", closed(mkstemp(name)));
    unlink(name);
    name = ended("made.XXXXXX.c");
    TRY("at the end of memory", closed(mkstemps(name, 2)));
    unlink(name);
    TRY("a wrong template", closed(mkstemp(ended("made"))));
    TRY("the folder itself", fstatat(data, "", &status, AT_EMPTY_PATH));
}

#define IN_PLACE(given, path, call) (strcpy(path, KEPT), TRY(given, call))

/* The path lies in the memory of the result, or runs into it. */
static void in_place(void)
{
    char target[41];
    memset(target, 'x', 40);
    target[40] = '\0';
    symlink(target, "l");
    char *at = end - sizeof(struct stat);
    memset(at - 100, 'y', sizeof(struct stat) + 100);
    IN_PLACE("in place", at, stat(at, (void *)at));
    IN_PLACE("in place", at, lstat(at, (void *)at));
    IN_PLACE("in place", at, stat64(at, (void *)at));
    IN_PLACE("in place", at, fstatat(AT_FDCWD, at, (void *)at, 0));
    IN_PLACE("within the result", at + 60, stat(at + 60, (void *)at));
    IN_PLACE("at the end of the result", end - 7, stat(end - 7, (void *)at));
    memset(at - 3, 'y', sizeof(struct stat) + 3);
    IN_PLACE("into the result", at - 3, stat(at - 3, (void *)at));
    IN_PLACE("before the result", at - 7, stat(at - 7, (void *)at));
    strcpy(at, "missing");
    TRY("missing, in place", stat(at, (void *)at));
    at = end - sizeof(struct statx);
    IN_PLACE("in place", at, statx(AT_FDCWD, at, 0, STATX_ALL, (void *)at));
    at = end - 40;
    strcpy(at, "l");
    TRY("in place", readlink(at, at, 40));
    strcpy(at, "l");
    TRY("in place", readlinkat(AT_FDCWD, at, at, 40));
    strcpy(at, "l");
    TRY("all memory there is", readlink(at, at, 1000));
    strcpy(at - 1, "./l");
    TRY("into the result", readlink(at - 1, at, 40));
    strcpy(at, "l");
    TRY("of no bytes", readlink(at, at, 0));
    at = end - 60; /* the result does not fit */
    IN_PLACE("in place, too little memory", at, stat(at, (void *)at));
    IN_PLACE("in place, too little memory", at, lstat(at, (void *)at));
    TRY("in place, to read only", stat(frozen, (void *)frozen));
    TRY("in place, without an end", stat(unended(200), (void *)(end - 200)));
    TRY("in place, bad", stat(end, (void *)end));
    TRY("in place, nothing", stat(NULL, NULL));
}

static void bad_buffers(void)
{
    char text[100];
    struct iovec *parts = (void *)(end - 2 * sizeof *parts);
    off_t *at = (void *)(end - sizeof *at), *half = (void *)(end - 4);
    const int other = open("b.data", O_CREAT | O_RDWR | O_TRUNC, 0600);
    TRY("bad", pread(data, end, 10, 0));
    TRY("bad", pwrite(data, end, 10, 0));
    TRY("too short", pread(data, end - 5, 10, 0));
    TRY("bad", readv(data, (void *)end, 1));
    TRY("bad", readv(data, NULL, 1));
    TRY("bad, none of them", readv(data, (void *)end, 0));
    parts[0] = (struct iovec){text, 5};
    parts[1] = (struct iovec){text + 5, 5};
    TRY("more than there are", preadv(data, parts, 3, 0));
    TRY("all there are", preadv(data, parts, 2, 0));
    TRY("fewer than none", preadv(data, parts, -1, 0));
    TRY("more than may be", preadv(data, parts, 5000, 0));
    TRY("all there are", pwritev(data, parts, 2, 0));
    TRY("bad", pwritev(data, (void *)end, 2, 0));
    TRY("unknown flags", preadv2(data, parts, 2, 0, 1 << 20));
    TRY("bad, unknown flags", pwritev2(data, (void *)end, 2, 0, 1 << 20));
    parts[1] = (struct iovec){end, 5};
    TRY("of which one is bad", preadv(data, parts, 2, 0));
    parts[0] = (struct iovec){parts, 2 * sizeof *parts};
    parts[1] = (struct iovec){text, 5};
    TRY("into itself", preadv(data, parts, 2, 0));
    TRY("bad", sendfile(other, data, (void *)end, 10));
    TRY("half bad", sendfile(other, data, half, 10));
    *at = 0;
    TRY("at the end of memory", sendfile(other, data, at, 10));
    TRY("bad", copy_file_range(data, (void *)end, other, NULL, 10, 0));
    TRY("bad", copy_file_range(data, NULL, other, (void *)end, 10, 0));
    TRY("half bad", copy_file_range(data, NULL, other, half, 10, 0));
    *at = 0;
    TRY("at the end of memory", copy_file_range(data, NULL, other, at, 10, 0));
    TRY("bad", splice(data, (void *)end, other, NULL, 10, 0));
    TRY("bad", fstat(data, (void *)end));
    TRY("bad", pipe((void *)end));
    TRY("bad", socketpair(AF_UNIX, SOCK_STREAM, 0, (void *)end));
    TRY("bad", accept(data, (void *)end, (void *)end));
    TRY("bad", fcntl(data, F_GETLK, end));
    TRY("bad", memfd_create(end, 0));
    TRY("bad", munmap((void *)1, 5));
    TRY("bad", msync((void *)1, 5, MS_SYNC));
    TRY("bad", mremap((void *)1, 5, 5, 0) == MAP_FAILED ? -1 : 0);
    TRY("bad", mmap((void *)1, 5, PROT_READ, MAP_FIXED | MAP_SHARED, data, 0) == MAP_FAILED ? -1 : 0);
    close(other);
}

static int moved(size_t result)
{
    return result == 0 ? 0 : -1;
}

static void streams(void)
{
    static char buffer[200], text[100];
    FILE *const bad = (FILE *)end, *const none = NULL;
    TRY("no stream", moved(fread(text, 0, 5, none)));
    TRY("no stream", moved(fread(text, 5, 0, bad)));
    TRY("no stream", moved(fread_unlocked(text, 0, 5, bad)));
    TRY("no stream", moved(fwrite(text, 0, 5, none)));
    TRY("no stream", moved(fwrite(text, 5, 0, bad)));
    TRY("no stream", moved(fwrite_unlocked(text, 5, 0, bad)));
    TRY("no mode", stream_closed(fdopen(data, "no mode")));
    TRY("no descriptor", stream_closed(fdopen(999, "r")));
    TRY("no line", getline(NULL, NULL, stdin));
    FILE *stream = fopen("b.data", "w+");
    TRY("no items", moved(fread(text, 0, 5, stream)));
    char *own = end - 200;
    setvbuf(stream, own, _IOFBF, 200);
    fputs("12345", stream);
    strcpy(own + 100, "a text in the stream's own memory");
    TRY("in place", fputs(own + 100, stream));
    rewind(stream);
    TRY("in place", fgets(own + 3, 20, stream) ? 0 : -1);
    memset(own, 'v', 200);
    rewind(stream);
    strcpy(end - 6, "vwxyz");
    fwrite(buffer, 1, 190, stream);
    TRY("in place, over its end", fputs(end - 6, stream));
    fclose(stream);
}

static void requests(void)
{
    struct aiocb *const bad = (void *)end, *nobody[3] = {NULL, NULL, NULL}, nothing = {.aio_lio_opcode = LIO_NOP};
    struct aiocb *some[3] = {NULL, &nothing, NULL};
    TRY("bad", aio_fsync(99, bad));
    TRY("nothing", aio_fsync(99, NULL));
    TRY("bad", lio_listio(99, (void *)end, 2, NULL));
    TRY("bad, none of them", lio_listio(LIO_WAIT, (void *)end, 0, NULL));
    TRY("bad, none of them", lio_listio(LIO_NOWAIT, (void *)end, 0, NULL));
    TRY("nothing", lio_listio(LIO_WAIT, nobody, 3, NULL));
    TRY("nothing", lio_listio(LIO_NOWAIT, nobody, 3, NULL));
    TRY("nothing to do", lio_listio(LIO_WAIT, some, 3, NULL));
    struct aiocb *block = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 2; i++) { /* once without having asked for the result */
        *block = (struct aiocb){.aio_fildes = data, .aio_buf = frozen, .aio_nbytes = 10, .aio_offset = 50};
        TRY("a block", aio_write(block));
        while (aio_error(block) == EINPROGRESS)
            usleep(100);
    }
    TRY("a block", aio_return(block));
    *block = (struct aiocb){.aio_fildes = 999, .aio_buf = frozen, .aio_nbytes = 10};
    TRY("no descriptor", aio_read(block));
    while (aio_error(block) == EINPROGRESS)
        usleep(100);
    munmap(block, PAGE); /* gone, without having been asked */
    TRY("another", closed(open(KEPT, O_RDONLY)));
}

/* A filter may answer with any errno, without a look at the path. */
static void filtered(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
#ifdef SYS_mkdir
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mkdir, 1, 0),
#endif
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mkdirat, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOENT),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        printf("no filter: %s\n", strerror(errno));
    TRY("filtered, bad", mkdir(end, 0700));
    TRY("filtered, 100 bytes without an end", mkdirat(AT_FDCWD, unended(100), 0700));
    TRY("filtered", mkdir("x", 0700));
}

int main(void)
{
    char *memory = mmap(NULL, 9 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    end = memory + 4 * PAGE;
    frozen = memory + 6 * PAGE;
    strcpy(frozen, KEPT);
    setvbuf(stdout, NULL, _IOLBF, 0);
    data = open(KEPT, O_CREAT | O_RDWR | O_TRUNC, 0600);
    if (pwrite(data, memory, 1000, 0) != 1000 || mprotect(end, PAGE, PROT_NONE) != 0 ||
        mprotect(frozen, PAGE, PROT_READ) != 0 || mprotect(frozen + PAGE, PAGE, PROT_NONE) != 0)
        return 1;
    behind = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, data, 0);
    behind += PAGE;
    bad_paths();
    good_paths();
    in_place();
    bad_buffers();
    streams();
    requests();
    filtered();
    return 5;
}
