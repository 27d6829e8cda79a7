/* Programs that do what few programs do. Each prints what happened; the first argument names it, the second a file. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static char *path, bytes[100];
static _Atomic int stop;
static sigjmp_buf back;

static int fresh(int flags)
{
    return open(path, O_RDWR | O_CREAT | O_TRUNC | flags, 0600);
}

/* Writes one byte, and says where it went. */
static void mark(int fd, const char *what)
{
    if (write(fd, "m", 1) == 1)
        printf("%s %ld\n", what, (long)lseek(fd, 0, SEEK_CUR) - 1);
}

/* Positions that move by ways that are not recorded. */
static void positions(void)
{
    int fd = fresh(0), other = open("/bin/sh", O_RDONLY);
    int copy = fcntl(fd, F_DUPFD, 100);
    write(copy, bytes, 100);
    mark(fd, "fcntl");
    dprintf(fd, "%050d", 1);
    mark(fd, "dprintf");
    FILE *stream = fdopen(copy, "w");
    fwrite(bytes, 1, 100, stream);
    fflush(stream);
    mark(fd, "stream");
    sendfile(fd, other, NULL, 30);
    mark(fd, "sendfile");
    copy_file_range(other, NULL, fd, NULL, 40, 0);
    mark(fd, "copy_file_range");
    struct iovec part = {bytes, 20};
    pwritev2(fd, &part, 1, -1, RWF_APPEND);
    mark(fd, "appended once");
    fcntl(fd, F_SETFL, O_APPEND);
    lseek(fd, 0, SEEK_SET);
    mark(fd, "appending");
    fcntl(fd, F_SETFL, 0);
    if (vfork() == 0) {
        dup2(fd, 1);
        execl("/bin/echo", "echo", "hello", NULL);
        _exit(1);
    }
    wait(NULL);
    mark(fd, "vfork");
}

/* A vector that the kernel never looks at. */
static void vector(void)
{
    int fd = open(path, O_CREAT | O_RDONLY, 0600);
    errno = 0;
    int result = (int)writev(fd, (struct iovec *)8, 3);
    printf("%d %d\n", result, errno);
}

static void *open_and_close(void *unused)
{
    while (!stop)
        close(open(path, O_CREAT | O_RDWR, 0600));
    return unused;
}

/* Children made past every fork handler while another thread opens files. */
static void fork_storm(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, open_and_close, NULL);
    for (int i = 0; i < 300; i++) {
        pid_t child = _Fork();
        if (child == 0) {
            close(open(path, O_CREAT | O_RDWR, 0600));
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
    stop = 1;
    pthread_join(thread, NULL);
    puts("done");
}

static void open_before_fork(void)
{
    close(open(path, O_CREAT | O_RDWR, 0600));
}

/* A fork handler that makes calls. */
static void fork_handler(void)
{
    pthread_atfork(open_before_fork, open_before_fork, open_before_fork);
    if (fork() == 0)
        _exit(0);
    wait(NULL);
    puts("done");
}

/* The run directory is away while a child wants to record; standard error is the data file by then. */
static void homeless_child(void)
{
    char *folder = getenv("ENSIO_DIR"), away[4096];
    snprintf(away, sizeof away, "%s.away", folder);
    close(2);
    int fd = fresh(0);
    rename(folder, away);
    if (fork() == 0) {
        write(fd, "data", 4);
        _exit(0);
    }
    wait(NULL);
    rename(away, folder);
    puts("written");
}

static void *write_once(void *fd)
{
    write(*(int *)fd, "x", 1);
    return NULL;
}

static void *shout(void *unused)
{
    long heard = 0;
    while (!stop)
        heard += write(1, "spoilt", 6) > 0;
    return heard ? bytes : unused;
}

/* Standard output is closed: what is written there must go nowhere, the recorder's files included. */
static void closed_output(void)
{
    pthread_t shouting, thread;
    void *heard;
    int fd = fresh(0), say = dup2(2, 50);
    close(1);
    pthread_create(&shouting, NULL, shout, NULL);
    for (int i = 0; i < 200; i++) {
        pthread_create(&thread, NULL, write_once, &fd);
        pthread_join(thread, NULL);
    }
    stop = 1;
    pthread_join(shouting, &heard);
    dprintf(say, heard ? "heard\n" : "silent\n");
}

static void jump(int number)
{
    siglongjmp(back, number);
}

/* Out of a read that would block forever, by a signal. */
static void jumps(void)
{
    char fifo[4096];
    snprintf(fifo, sizeof fifo, "%s.fifo", path);
    if (mkfifo(fifo, 0600) != 0)
        exit(1);
    struct sigaction action = {.sa_handler = jump, .sa_flags = SA_NODEFER};
    sigaction(SIGALRM, &action, NULL);
    for (volatile int i = 0; i < 3; i++)
        if (sigsetjmp(back, 1) == 0) {
            ualarm(20000, 0);
            open(fifo, O_RDONLY);
        }
    int fd = fresh(0);
    mark(fd, "after");
}

int main(int count, char **arguments)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } lives[] = {{"positions", positions},          {"vector", vector},
                 {"fork_storm", fork_storm},        {"fork_handler", fork_handler},
                 {"closed_output", closed_output},  {"jumps", jumps},
                 {"homeless_child", homeless_child}};
    path = arguments[count - 1];
    for (size_t i = 0; i < sizeof lives / sizeof *lives; i++)
        if (strcmp(lives[i].name, arguments[1]) == 0)
            lives[i].run();
    return 6;
}
