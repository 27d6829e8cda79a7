/* Calls from places that are marked "site NAME: calls". argv[1]: a folder. */
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static int fd;

static void require(int holds, const char *what)
{
    if (!holds) {
        perror(what);
        exit(1);
    }
}

static __attribute__((noinline)) void write_some(int times)
{
    for (int i = 0; i < times; i++)
        require(write(fd, "abc", 3) == 3, "write"); /* site loop: 10 write */
    require(pwrite(fd, "x", 1, 0) == 1, "pwrite");  /* site once: 2 pwrite */
}

static inline __attribute__((always_inline)) void inlined(void)
{
    const off_t at = lseek(fd, 0, SEEK_SET); /* site inlined: 2 lseek */
    require(at == 0, "lseek");
}

static void streams(const char *folder)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/stream", folder);
    FILE *stream = fopen(path, "w"); /* site stream_open: 1 fopen */
    require(stream != NULL, path);
    for (int i = 0; i < 3; i++)
        fwrite("hello", 1, 5, stream); /* site stream_write: 3 fwrite */
    fclose(stream);                    /* site stream_close: 1 fclose */
}

static void *thread(void *unused)
{
    require(pwrite(fd, "t", 1, 1) == 1, "thread"); /* site thread: 4 pwrite */
    return unused;
}

static void posted(void)
{
    static char bytes[4096];
    struct aiocb block = {.aio_fildes = fd, .aio_buf = bytes, .aio_nbytes = sizeof bytes, .aio_offset = 8192};
    const struct aiocb *const list[] = {&block};
    require(aio_write(&block) == 0, "aio_write"); /* site posted: 1 aio_write */
    while (aio_error(&block) == EINPROGRESS)
        aio_suspend(list, 1, NULL);
    require(aio_return(&block) == sizeof bytes, "aio_return");
}

static sigjmp_buf back;

static void handler(int signal)
{
    (void)signal;
    if (pwrite(fd, "h", 1, 2) != 1) /* site handler: 3 pwrite */
        _exit(1);
    siglongjmp(back, 1);
}

static void jumps(void)
{
    stack_t other = {.ss_sp = malloc(65536), .ss_size = 65536};
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK | SA_NODEFER};
    require(sigaltstack(&other, NULL) == 0 && sigaction(SIGUSR1, &action, NULL) == 0, "signals");
    for (int i = 0; i < 3; i++)
        if (!sigsetjmp(back, 1))
            raise(SIGUSR1);
}

static ucontext_t main_stack, own_stack;

static void coroutine(void)
{
    if (pwrite(fd, "c", 1, 3) != 1) /* site coroutine: 5 pwrite */
        _exit(1);
}

/* The stack ends where memory does. */
static void coroutines(void)
{
    const size_t bytes = 65536;
    for (int i = 0; i < 5; i++) {
        char *memory = mmap(NULL, bytes + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        require(memory != MAP_FAILED && mprotect(memory + bytes, 4096, PROT_NONE) == 0, "mmap");
        getcontext(&own_stack);
        own_stack.uc_stack.ss_sp = memory;
        own_stack.uc_stack.ss_size = bytes;
        own_stack.uc_link = &main_stack;
        makecontext(&own_stack, coroutine, 0);
        swapcontext(&main_stack, &own_stack);
        munmap(memory, bytes + 4096);
    }
}

static void child(void)
{
    pid_t made = fork();
    if (made == 0) {
        require(pwrite(fd, "f", 1, 4) == 1, "child"); /* site child: 1 pwrite */
        write_some(5);
        exit(0);
    }
    int status;
    require(made > 0 && waitpid(made, &status, 0) == made && status == 0, "fork");
}

int main(int count, char **arguments)
{
    char path[4096];
    pthread_t threads[4];
    require(count == 2, "a folder");
    snprintf(path, sizeof path, "%s/data", arguments[1]);
    fd = open(path, O_RDWR | O_CREAT, 0600); /* site open: 1 open */
    require(fd >= 0, path);
    write_some(5);
    inlined();
    streams(arguments[1]);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, thread, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    posted();
    jumps();
    coroutines();
    child();
    inlined();
    return close(fd); /* site close: 1 close */
}
