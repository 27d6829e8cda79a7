/* Programs that meet a limit: limits WHAT FILE. Each prints what it got, and returns 4. Those that are given a limit
 * before they start are "work". */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { CALLS = 40000 };

static char *path, bytes[8];

static int fresh(void)
{
    return open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
}

/* So many calls on a file, and whether all went well. */
static void write_all(int fd)
{
    int done = 0;
    for (int i = 0; i < CALLS; i++)
        done += pwrite(fd, bytes, sizeof bytes, 0) == sizeof bytes;
    printf("%d calls, closed %d\n", done, close(fd));
}

static void work(void)
{
    write_all(fresh());
}

/* All descriptors are taken, and later let go. */
static void descriptors(void)
{
    struct rlimit limit = {64, 64};
    int fd = fresh(), taken = 0, last = -1, copy;
    setrlimit(RLIMIT_NOFILE, &limit);
    while ((copy = dup(0)) >= 0) {
        last = copy;
        taken++;
    }
    printf("%d taken, then errno %d; open says %d\n", taken, errno, open(path, O_RDONLY));
    write_all(dup2(fd, fd));
    while (taken-- > 0)
        close(last--);
    work();
}

static long address_space(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (fscanf(file, "%ld", &pages) != 1)
        abort();
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

/* Of the address space 24 MiB are left, of which the program wants 16 after its calls. */
static void memory(void)
{
    int fd = fresh();
    free(malloc(1)); /* the allocator's own first steps */
    rlim_t now = (rlim_t)address_space() + (24 << 20);
    struct rlimit limit = {now, now};
    setrlimit(RLIMIT_AS, &limit);
    write_all(fd);
    void *block = malloc(16 << 20);
    printf("malloc %s\n", block ? "gave it" : "failed");
    errno = 0;
    void *more = malloc(64 << 20);
    printf("%s %d\n", more ? "gave more" : "failed", errno);
}

/* Nothing of the address space is left. */
static void no_memory(void)
{
    int fd = fresh();
    printf("begins\n");
    rlim_t now = (rlim_t)address_space();
    struct rlimit limit = {now, now};
    setrlimit(RLIMIT_AS, &limit);
    write_all(fd);
    write_all(fresh());
}

static void file_size(void)
{
    struct rlimit limit = {4096, 4096};
    int fd = fresh();
    setrlimit(RLIMIT_FSIZE, &limit);
    write_all(fd);
}

static void locked(void)
{
    struct rlimit limit = {64 << 20, 64 << 20};
    int fd = fresh();
    printf("setrlimit %d\n", setrlimit(RLIMIT_MEMLOCK, &limit));
    printf("mlockall %d\n", mlockall(MCL_CURRENT | MCL_FUTURE));
    write_all(fd);
}

/* Lets its caller take the run directory away. */
static void homeless(void)
{
    char line[16];
    int fd = fresh();
    printf("ready\n");
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin))
        abort();
    write_all(fd);
    work();
}

static int handled;

static void on_signal(int number)
{
    (void)number;
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    handled += pwrite(fd, bytes, 8, 0) == 8 && lseek(fd, 4, SEEK_SET) == 4 && write(fd, bytes, 8) == 8;
    close(fd);
}

static void *on_a_small_stack(void *unused)
{
    long page = sysconf(_SC_PAGESIZE), room = sysconf(_SC_MINSIGSTKSZ) + 4096;
    room = (room + page - 1) / page * page;
    char *stack = mmap(NULL, (size_t)(room + page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(stack, (size_t)page, PROT_NONE); /* what overflows, ends the program */
    stack_t alternate = {.ss_sp = stack + page, .ss_size = (size_t)room};
    sigaltstack(&alternate, NULL);
    for (int i = 0; i < 100; i++)
        pthread_kill(pthread_self(), SIGUSR1);
    return unused;
}

/* Calls in handlers on their own small stacks, in threads of small stacks. */
static void stacks(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, (size_t)sysconf(_SC_THREAD_STACK_MIN));
    for (int i = 0; i < 4; i++) {
        pthread_t thread;
        pthread_create(&thread, &small, on_a_small_stack, NULL);
        pthread_join(thread, NULL);
    }
    on_a_small_stack(NULL);
    printf("%d handled\n", handled);
}

int main(int count, char **arguments)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } all[] = {{"work", work},           {"descriptors", descriptors}, {"memory", memory},     {"no_memory", no_memory},
               {"file_size", file_size}, {"locked", locked},           {"homeless", homeless}, {"stacks", stacks}};
    path = arguments[count - 1];
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i].name, arguments[1]) == 0)
            all[i].run();
    return 4;
}
