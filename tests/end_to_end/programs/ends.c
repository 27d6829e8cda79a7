/* ends.c HOW CALLS OUT: makes CALLS writes of 8 bytes, says so through standard output, and ends in one of these ways:
 *
 *     returns      from main
 *     _exit        past all handlers
 *     limited      with a limit on the size of files that has no room for another one
 *     forks        two children write as much, and all three end
 *     execs        as another program, this one with "returns"
 *     late         and its destructor writes once more
 *     threads      while two more threads go on writing. Each says how many of its calls returned
 *
 * The status is 7. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int fd;
static const char *how;
static uint64_t calls, done[2];

static void write_all(uint64_t most)
{
    for (uint64_t i = 0; i < most; i++)
        if (pwrite(fd, &i, sizeof i, (off_t)(8 * (i % 512))) != sizeof i)
            abort();
}

static void *go_on(void *number)
{
    uint64_t *const counter = number;
    for (;;) {
        write_all(1);
        __atomic_add_fetch(counter, 1, __ATOMIC_RELEASE);
    }
}

__attribute__((destructor)) static void at_end(void)
{
    if (strcmp(how, "late") == 0)
        write_all(1);
    if (strcmp(how, "threads") == 0) {
        usleep(50000);
        for (int i = 0; i < 2; i++) {
            const uint64_t returned = __atomic_load_n(&done[i], __ATOMIC_ACQUIRE);
            syscall(SYS_write, 1, &returned, sizeof returned); /* past every wrapper */
        }
    }
}

int main(int count, char **arguments)
{
    how = arguments[1];
    calls = strtoull(arguments[2], NULL, 10);
    fd = open(arguments[3], O_CREAT | O_RDWR, 0600);
    if (strcmp(how, "threads") == 0) {
        for (int i = 0; i < 2; i++) {
            pthread_t thread;
            pthread_create(&thread, NULL, go_on, &done[i]);
        }
    }
    if (strcmp(how, "forks") == 0) {
        for (int i = 0; i < 2; i++) {
            if (fork() == 0) {
                write_all(calls);
                exit(0);
            }
        }
        while (wait(NULL) > 0)
            ;
    }
    write_all(calls);
    syscall(SYS_write, 1, &calls, sizeof calls);
    if (strcmp(how, "_exit") == 0)
        _exit(7);
    if (strcmp(how, "execs") == 0)
        execl(arguments[0], arguments[0], "returns", arguments[2], arguments[3], (char *)NULL);
    if (strcmp(how, "limited") == 0) {
        const struct rlimit none = {0, RLIM_INFINITY};
        setrlimit(RLIMIT_FSIZE, &none);
    }
    return 7;
}
