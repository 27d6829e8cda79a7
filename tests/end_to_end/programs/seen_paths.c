/* Paths that were seen before and mean something else now: seen_paths WHAT FOLDER [LIBRARY]. Each file gets as many
 * bytes in one write as the program says on standard output: FILE BYTES. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition) \
    if (!(condition)) { \
        perror(#condition); \
        _exit(90); \
    }

static char folder[4096], *library;
static char bytes[65536];
static int next_size = 1;

/* Writes to a file, and says which one: the name that the program knows, not the one that it passes. */
static void put(const char *passed, const char *meant, int size)
{
    errno = 77;
    int fd = open(passed, O_RDWR | O_CREAT, 0600);
    CHECK(fd >= 0 && errno == 77);
    CHECK(write(fd, bytes, size) == size);
    CHECK(close(fd) == 0 && errno == 77);
    struct stat found;
    CHECK(stat(passed, &found) == 0);
    printf("%s %d\n", meant, size);
}

/* Only looks at a file; said as if it were of minus one byte. */
static void look(const char *passed, const char *meant)
{
    struct stat found;
    CHECK(stat(passed, &found) == 0);
    printf("%s -1\n", meant);
}

static void put_next(const char *passed, const char *meant)
{
    put(passed, meant, next_size++);
}

static void make_folders(void)
{
    CHECK(mkdir("a", 0700) == 0 && mkdir("b", 0700) == 0 && mkdir("a/c", 0700) == 0);
}

static void folders(void)
{
    make_folders();
    int a = open("a", O_RDONLY | O_DIRECTORY);
    for (int round = 0; round < 3; round++) {
        put_next("f", "f");
        CHECK(chdir("a") == 0);
        put_next("f", "a/f");
        put_next("./f", "a/f");
        CHECK(chdir("../b") == 0);
        if (round)
            look("f", "b/f");
        put_next("f", "b/f");
        put_next("../f", "b/../f");
        CHECK(fchdir(a) == 0);
        put_next("f", "a/f");
        CHECK(chdir("/nonexistent") == -1 && errno == ENOENT);
        put_next("f", "a/f");
        CHECK(chdir(folder) == 0);
    }
    close(a);
}

/* Another function of the C library, or another library, changes the folder. */
static int visit(const char *path, const struct stat *about, int kind, struct FTW *where)
{
    if (kind != FTW_F)
        return 0;
    char meant[4096];
    snprintf(meant, sizeof meant, "%.*sg", where->base, path);
    put_next("g", meant);
    return 0;
}

static void walks(void)
{
    make_folders();
    put_next("g", "g");
    put_next("a/x", "a/x");
    put_next("b/x", "b/x");
    put_next("a/c/x", "a/c/x");
    CHECK(nftw("a/c", visit, 8, FTW_CHDIR | FTW_PHYS) == 0);
    CHECK(nftw("b", visit, 8, FTW_CHDIR | FTW_PHYS) == 0);
    put_next("g", "g");
    char *roots[] = {"a", "b", NULL};
    FTS *tree = fts_open(roots, FTS_PHYSICAL, NULL);
    FTSENT *entry;
    while ((entry = fts_read(tree)))
        if (entry->fts_info == FTS_F && strcmp(entry->fts_name, "x") == 0) {
            char meant[4096];
            snprintf(meant, sizeof meant, "%.*sg", entry->fts_pathlen - entry->fts_namelen, entry->fts_path);
            put_next("g", meant);
        }
    CHECK(fts_close(tree) == 0);
    put_next("g", "g");
}

static void of_library(void)
{
    make_folders();
    put_next("f", "f");
    void *handle = dlopen(library, RTLD_NOW);
    CHECK(handle);
    int (*go)(const char *path) = (int (*)(const char *))dlsym(handle, "go");
    CHECK(go("a") == 0);
    put_next("f", "a/f");
    CHECK(go("../b") == 0);
    put_next("f", "b/f");
}

static pthread_barrier_t turns;

static void *of_its_own(void *name)
{
    char meant[64];
    CHECK(unshare(CLONE_FS) == 0);
    CHECK(chdir(name) == 0);
    snprintf(meant, sizeof meant, "%s/f", (char *)name);
    for (int i = 0; i < 100; i++) {
        pthread_barrier_wait(&turns);
        put("f", meant, 1000 + (*(char *)name - 'a'));
    }
    return NULL;
}

static void threads(void)
{
    pthread_t thread[2];
    make_folders();
    put_next("f", "f");
    pthread_barrier_init(&turns, NULL, 2);
    pthread_create(&thread[0], NULL, of_its_own, "a");
    pthread_create(&thread[1], NULL, of_its_own, "b");
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    put_next("f", "f");
}

static void renamed(void)
{
    make_folders();
    CHECK(chdir("a") == 0);
    put_next("f", "a/f");
    CHECK(rename("../a", "../z") == 0);
    look("f", "z/f");
    put_next("f", "z/f");
    CHECK(rename("../z", "../a") == 0);
    put_next("f", "a/f");
    CHECK(chdir("c") == 0);
    put_next("f", "a/c/f");
    CHECK(unlink("f") == 0 && rmdir("../c") == 0);
    CHECK(chdir(folder) == 0);
    put_next("f", "f");
}

static void exchange(int fd, int other)
{
    char byte[64];
    for (int i = 0; i < 50; i++)
        CHECK(write(fd, bytes, 7) == 7 && read(other, byte, 7) == 7);
}

/* What a path names is replaced by something of another kind. Only the file's calls count. */
static void replaced(void)
{
    for (int round = 0; round < 3; round++) {
        put_next("p", "p");
        CHECK(round ? rename("p", "old") == 0 : unlink("p") == 0);
        CHECK(mkfifo("p", 0600) == 0);
        int fifo = open("p", O_RDWR);
        exchange(fifo, fifo);
        close(fifo);
        CHECK(unlink("p") == 0);
        CHECK(mkdir("p", 0700) == 0);
        close(open("p", O_RDONLY));
        int nameless = open(folder, O_TMPFILE | O_RDWR, 0600);
        CHECK(write(nameless, bytes, 3000 + round) == 3000 + round);
        CHECK(rmdir("p") == 0);
        char link[64], name[4096];
        snprintf(link, sizeof link, "/proc/self/fd/%d", nameless);
        ssize_t length = readlink(link, name, sizeof name - 1);
        CHECK(length > 0);
        name[length] = '\0';
        if (round == 1)
            CHECK(linkat(AT_FDCWD, link, AT_FDCWD, "first", AT_SYMLINK_FOLLOW) == 0);
        if (round == 2)
            CHECK(linkat(nameless, "", AT_FDCWD, "second", AT_EMPTY_PATH) == 0);
        const char *const names[] = {strrchr(name, '/') + 1, "first", "second"};
        printf("%s %d\n", names[round], 3000 + round);
        close(nameless);
    }
    put_next("p", "p");
    CHECK(symlink("p", "l") == 0);
    put_next("l", "l");
    put_next("l", "l");
}

/* Calls of a child in the same memory are not this process's: its descriptors and its folder are its own. */
static int in_same_memory(void *how)
{
    CHECK(chdir("b") == 0);
    close(3), close(4), close(5);
    for (int i = 0; i < 4; i++)
        open("/dev/null", O_RDWR);
    int fd = open("f", O_RDWR | O_CREAT, 0600);
    dup2(fd, 3);
    if (!how)
        execl("/bin/true", "true", NULL);
    _exit(0);
    return 0;
}

static void same_memory(void)
{
    static char stack[65536];
    make_folders();
    for (int round = 0; round < 3; round++) {
        int first = open("first", O_RDWR | O_CREAT, 0600), second = open("second", O_RDWR | O_CREAT, 0600);
        put_next("f", "f");
        pid_t child =
            round == 1 ? clone(in_same_memory, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, "x") : vfork();
        if (child == 0)
            in_same_memory(round ? "x" : NULL);
        int status;
        CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
        CHECK(write(first, bytes, 5000 + round) == 5000 + round);
        CHECK(write(second, bytes, 6000 + round) == 6000 + round);
        printf("first %d\nsecond %d\n", 5000 + round, 6000 + round);
        put_next("f", "f");
        close(first), close(second);
    }
}

/* A child by fork has a separate record, and knows its parent's names. */
static void child(void)
{
    make_folders();
    put_next("f", "f");
    put_next("b/f", "b/f");
    fflush(stdout);
    if (fork() == 0) {
        look("b/f", "b/f");
        put("f", "f", 7000);
        put("b/f", "b/f", 7001);
        CHECK(chdir("a") == 0);
        put("f", "a/f", 7002);
        exit(0);
    }
    wait(NULL);
    put_next("f", "f");
}

/* Handlers open, duplicate and close files at any moment of the same calls. */
static volatile sig_atomic_t handled;

static void handler(int signal)
{
    char name[64];
    struct stat found;
    const int error = errno;
    snprintf(name, sizeof name, "handler.%d", handled++ % 50);
    int fd = open(name, O_RDWR | O_CREAT, 0600), copy = dup(fd);
    CHECK(write(fd, bytes, 11) == 11 && write(copy, bytes, 11) == 11);
    CHECK(stat(name, &found) == 0 && stat("main.1", &found) == 0);
    close(fd), close(copy);
    errno = error;
}

static void handlers(void)
{
    struct itimerval often = {{0, 60}, {0, 60}};
    signal(SIGALRM, handler);
    put("main.1", "main.1", 13);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 8000; i++) {
        char name[64];
        struct stat found;
        snprintf(name, sizeof name, "main.%d", i % 1000);
        int fd = open(name, O_RDWR | O_CREAT, 0600), copy = dup(fd);
        CHECK(fd >= 0 && copy >= 0);
        ssize_t moved = write(fd, bytes, 13);
        CHECK(moved == 13);
        CHECK(pwrite(copy, bytes, 17, 0) == 17);
        CHECK(stat(name, &found) == 0);
        CHECK(close(fd) == 0 && close(copy) == 0);
    }
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    printf("handled %d\n", (int)handled);
}

/* Threads open, duplicate and close different files at the same time, so that descriptors change hands all the time. */
static void *storm(void *number)
{
    char name[64], own = *(char *)number;
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "storm.%c.%d", own, i % 40);
        int fd = open(name, O_RDWR | O_CREAT, 0600), copy = dup(fd);
        CHECK(fd >= 0 && copy >= 0);
        CHECK(write(fd, bytes, 100 + own) == 100 + own);
        CHECK(close(fd) == 0);
        CHECK(write(copy, bytes, 1) == 1);
        CHECK(close(copy) == 0);
    }
    return NULL;
}

static void storms(void)
{
    pthread_t thread[4];
    static char names[] = "abcd";
    for (int i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, storm, &names[i]);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
}

/* A path below /proc names what a descriptor refers to: a file first, a pipe later. Only the file's calls count. */
static void descriptors(void)
{
    static const char path[] = "/proc/self/fd/50";
    int pair[2];
    for (int round = 0; round < 2; round++) {
        int fd = open("f", O_RDWR | O_CREAT, 0600);
        CHECK(dup2(fd, 50) == 50 && close(fd) == 0);
        fd = open(path, O_RDWR);
        CHECK(write(fd, bytes, 4) == 4);
        close(fd);
        CHECK(pipe(pair) == 0 && dup2(pair[1], 50) == 50);
        fd = open(path, O_RDWR);
        CHECK(write(fd, bytes, 5) == 5);
        close(fd), close(pair[0]), close(pair[1]);
    }
}

/* Files whose names are read from standard input, one a line. */
static void listed(void)
{
    char *line = NULL;
    size_t room = 0;
    for (ssize_t length; (length = getline(&line, &room, stdin)) > 0;) {
        line[length - 1] = '\0';
        int fd = open(line, O_RDWR | O_CREAT, 0600);
        CHECK(fd >= 0 && write(fd, bytes, next_size) == next_size);
        next_size++;
        close(fd);
    }
}

/* Makes a file below a folder's descriptor. The kernel says what the folder is called now. */
static void put_at(int fd, const char *passed)
{
    char link[64], meant[4096];
    struct stat found;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const long length = syscall(SYS_readlinkat, AT_FDCWD, link, meant, sizeof meant - 100);
    CHECK(length > (long)strlen(folder) && memcmp(meant, folder, strlen(folder)) == 0);
    snprintf(meant + length, sizeof meant - length, "/%s", passed);
    int file = openat(fd, passed, O_RDWR | O_CREAT, 0600);
    CHECK(file >= 0 && write(file, bytes, next_size) == next_size);
    CHECK(fstatat(fd, passed, &found, 0) == 0 && stat(meant, &found) == 0);
    CHECK(close(file) == 0);
    printf("%s %d\n", meant + strlen(folder) + 1, next_size++);
}

static int folder_on(int fd, const char *path)
{
    int made = open(path, O_RDONLY | O_DIRECTORY);
    CHECK(made >= 0);
    if (made == fd)
        return fd;
    CHECK(dup2(made, fd) == fd && close(made) == 0);
    return fd;
}

/* A descriptor of a folder, which gets another folder or another name in all ways. */
static void below_descriptors(void)
{
    make_folders();
    CHECK(symlink("b", "l") == 0);
    int fd = folder_on(40, "a"), status;
    for (int round = 0; round < 2; round++) {
        put_at(fd, "f");
        put_at(fd, "./c//f");
        put_at(dup(fd), "f");
        put_at(fcntl(fd, F_DUPFD, 45), "g");
        folder_on(fd, "b");
        put_at(fd, "f");
        CHECK(rename("b", "z") == 0);
        put_at(fd, "f");
        CHECK(renameat(AT_FDCWD, "z", AT_FDCWD, "b") == 0);
        put_at(fd, "h");
        CHECK(close(fd) == 0);
        CHECK(syscall(SYS_openat, AT_FDCWD, "a/c", O_RDONLY | O_DIRECTORY) >= 0);
        folder_on(fd, "l");
        put_at(fd, "f");
        CHECK(close_range(fd, fd, 0) == 0);
        folder_on(fd, "a/c");
        put_at(fd, "f");
        CHECK(syscall(SYS_close, fd) == 0);
        folder_on(fd, "a");
        put_at(fd, "f");
        CHECK(fchdir(fd) == 0);
        put("x", "a/x", 9000 + round);
        CHECK(chdir(folder) == 0);
        DIR *list = opendir("b");
        put_at(dirfd(list), "d");
        put_at(dirfd(list), "e");
        CHECK(closedir(list) == 0);
        CHECK((list = fdopendir(open("a", O_RDONLY | O_DIRECTORY))));
        put_at(dirfd(list), "d");
        CHECK(closedir(list) == 0);
        /* Another process renames the folder, and the one that it lies in. */
        folder_on(fd, "a/c");
        put_at(fd, "before");
        pid_t child = fork();
        if (child == 0) {
            CHECK(syscall(SYS_renameat, AT_FDCWD, "a", AT_FDCWD, "y") == 0);
            _exit(0);
        }
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        put_at(fd, "before");
        put_at(fd, "after");
        CHECK(rename("y", "a") == 0);
        put_at(fd, "after");
        /* Neither the close nor the open is seen: the name is right a little later. */
        put_at(fd, "unseen");
        CHECK(syscall(SYS_close, fd) == 0);
        int made = syscall(SYS_openat, AT_FDCWD, "b", O_RDONLY | O_DIRECTORY);
        CHECK(made >= 0 && syscall(SYS_dup3, made, fd, 0) == fd && syscall(SYS_close, made) == 0);
        usleep(200000);
        put_at(fd, "unseen");
        CHECK(close(fd) == 0);
        folder_on(fd, "a");
    }
}

/* A handler jumps out of calls on new paths at any moment, while another thread makes such calls. */
static sigjmp_buf back;
static volatile sig_atomic_t jumps;

static void jump(int signal)
{
    jumps++;
    siglongjmp(back, 1);
}

static void *beside(void *done)
{
    for (int i = 0; i < 3000; i++) {
        char name[64];
        snprintf(name, sizeof name, "beside.%d", i);
        put(name, name, 1 + i);
    }
    __atomic_store_n((int *)done, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void jumping(void)
{
    static char completed[20000];
    struct itimerval often = {{0, 100}, {0, 100}};
    int done = 0, fd = folder_on(40, folder);
    volatile int i = -1;
    pthread_t thread;
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm, NULL);
    CHECK(pthread_create(&thread, NULL, beside, &done) == 0);
    signal(SIGALRM, jump);
    setitimer(ITIMER_REAL, &often, NULL);
    sigsetjmp(back, 0);
    while (++i < 20000) {
        char name[64];
        pthread_sigmask(SIG_UNBLOCK, &alarm, NULL);
        snprintf(name, sizeof name, "jump.%d", (int)i);
        int file = i % 2 ? open(name, O_RDWR | O_CREAT, 0600) : openat(fd, name, O_RDWR | O_CREAT, 0600);
        CHECK(file >= 0 && write(file, bytes, 1 + i) == 1 + i);
        completed[i] = 1;
        close(file);
        pthread_sigmask(SIG_BLOCK, &alarm, NULL);
    }
    pthread_sigmask(SIG_BLOCK, &alarm, NULL);
    CHECK(pthread_join(thread, NULL) == 0 && done);
    for (i = 0; i < 20000; i++)
        if (completed[i])
            printf("jump.%d %d\n", (int)i, 1 + (int)i);
    printf("jumped %d\n", (int)jumps);
}

static const struct {
    const char *name;
    void (*run)(void);
} all[] = {{"folders", folders},
           {"walks", walks},
           {"of_library", of_library},
           {"threads", threads},
           {"renamed", renamed},
           {"replaced", replaced},
           {"same_memory", same_memory},
           {"child", child},
           {"handlers", handlers},
           {"storms", storms},
           {"listed", listed},
           {"descriptors", descriptors},
           {"below_descriptors", below_descriptors},
           {"jumping", jumping}};

int main(int count, char **arguments)
{
    CHECK(count >= 3 && chdir(arguments[2]) == 0 && getcwd(folder, sizeof folder));
    library = arguments[3];
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i].name, arguments[1]) == 0)
            all[i].run();
    return 20;
}
