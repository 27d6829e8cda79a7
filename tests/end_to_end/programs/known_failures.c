/* What other tracers are known to get wrong: known_failures WHAT FILE. Prints what the calls returned; returns 5. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char *path, bytes[64];

/* Sizes that the compiler cannot know, into objects whose size it does: checked when the program runs. */
static void fortified(void)
{
    volatile size_t size = 10;
    volatile int flags = O_RDWR;
    char into[32];
    int fd = open(path, flags);
    printf("open %d\n", fd >= 0);
    printf("read %zd\n", read(fd, into, size));
    printf("pread %zd\n", pread(fd, into, size, 5));
    FILE *stream = fdopen(fd, "r+");
    printf("fread %zu\n", fread(into, 1, size, stream));
    printf("fgets %d\n", fgets(into, (int)size, stream) == into);
    fseek(stream, 0, SEEK_END);
    printf("fprintf %d\n", fprintf(stream, "%zu\n", size));
    fclose(stream);
}

static void statuses(void)
{
    struct stat is;
    struct statx more;
    int fd = open(path, O_RDONLY);
    printf("%d", stat(path, &is));
    printf("%d", lstat(path, &is));
    printf("%d", fstat(fd, &is));
    printf("%d", fstatat(AT_FDCWD, path, &is, 0));
    printf("%d\n", statx(AT_FDCWD, path, 0, STATX_SIZE, &more));
}

#ifdef OLD_STAT /* as programs that were built before glibc 2.33 call them */
extern int old_stat(int version, const char *path, struct stat *to);
extern int old_lstat(int version, const char *path, struct stat *to);
extern int old_fstat(int version, int fd, struct stat *to);
__asm__(".symver old_stat, __xstat@GLIBC_2.2.5");
__asm__(".symver old_lstat, __lxstat@GLIBC_2.2.5");
__asm__(".symver old_fstat, __fxstat@GLIBC_2.2.5");

static void old_statuses(void)
{
    struct stat is;
    int fd = open(path, O_RDONLY);
    printf("%d", old_stat(1, path, &is));
    printf("%d", old_lstat(1, path, &is));
    printf("%d\n", old_fstat(1, fd, &is));
}
#else
static void old_statuses(void)
{
}
#endif

/* A parent and a child that write at the same time, each to its own file, so many times. */
static void write_to(const char *name, int calls)
{
    char whole[4096];
    snprintf(whole, sizeof whole, "%s.%s", path, name);
    int fd = open(whole, O_WRONLY | O_CREAT, 0600);
    for (int i = 0; i < calls; i++)
        if (write(fd, bytes, 1) != 1)
            abort();
    close(fd);
}

static void parent_and_child(void)
{
    write_to("before", 10);
    pid_t child = fork();
    write_to(child ? "parent" : "child", child ? 3000 : 5000);
    if (child == 0)
        _exit(0);
    wait(NULL);
    printf("%d %d\n", getpid(), child);
}

static void *open_and_close(void *stop)
{
    while (!__atomic_load_n((int *)stop, __ATOMIC_RELAXED))
        close(open(path, O_RDONLY));
    return NULL;
}

/* Children that end in every way, made while a thread is in the middle of calls. */
static void ends_of_children(void)
{
    int stop = 0, status;
    pthread_t thread;
    pthread_create(&thread, NULL, open_and_close, &stop);
    for (int round = 0; round < 60; round++) {
        fflush(stdout); /* or a child that exits prints it again */
        pid_t child = fork();
        if (child == 0) {
            close(open(path, O_RDONLY));
            switch (round % 6) {
            case 0:
                exit(11);
            case 1:
                _exit(12);
            case 2:
                quick_exit(13);
            case 3:
                abort();
            case 4:
                raise(SIGTERM);
                break;
            case 5:
                syscall(SYS_exit_group, 14);
            }
        }
        waitpid(child, &status, 0);
        printf("%x\n", (unsigned)status & 0xff7f); /* without the mark of a core file */
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
}

static void *read_often(void *unused)
{
    char into;
    int fd = open(path, O_RDONLY);
    for (int i = 0; i < 100000; i++)
        if (pread(fd, &into, 1, i % 8) != 1)
            abort();
    close(fd);
    return unused;
}

static void two_threads(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, read_often, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

int main(int count, char **arguments)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } all[] = {{"fortified", fortified},
               {"statuses", statuses},
               {"old_statuses", old_statuses},
               {"parent_and_child", parent_and_child},
               {"ends_of_children", ends_of_children},
               {"two_threads", two_threads}};
    path = arguments[count - 1];
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i].name, arguments[1]) == 0)
            all[i].run();
    return 5;
}
