/* Many threads, each with its own calls on its own file, some of them at the same time as signals whose handler
 * writes too. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static char *folder;
static int calls, handler_fd;
static int handled;

static void on_alarm(int number)
{
    char byte = (char)number;
    int error = errno;
    if (write(handler_fd, &byte, 1) == 1)
        __atomic_fetch_add(&handled, 1, __ATOMIC_SEQ_CST);
    errno = error;
}

static void *work(void *number)
{
    char path[4096], bytes[16] = "";
    snprintf(path, sizeof path, "%s/thread.%ld", folder, (long)number);
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    for (int i = 0; i < calls; i++)
        if (write(fd, bytes, sizeof bytes) != sizeof bytes)
            abort();
    close(fd);
    return NULL;
}

int main(int count, char **arguments)
{
    folder = arguments[1];
    int threads = atoi(arguments[2]), rounds = atoi(arguments[4]);
    calls = atoi(arguments[3]);
    char path[4096];
    snprintf(path, sizeof path, "%s/handler", folder);
    handler_fd = open(path, O_CREAT | O_WRONLY | O_APPEND, 0600);
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, NULL);
    pthread_t *running = calloc((size_t)threads, sizeof *running);
    for (int round = 0; round < rounds; round++) {
        for (long i = 0; i < threads; i++)
            pthread_create(&running[i], NULL, work, (void *)(round * threads + i));
        for (int i = 0; i < threads; i++)
            pthread_join(running[i], NULL);
    }
    free(running);
    setitimer(ITIMER_REAL, &never, NULL);
    int mapped = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(path, sizeof path, maps))
        mapped += strstr(path, ".spool") != NULL;
    printf("%d %d\n", handled, mapped);
    return count == 5 ? 0 : 2;
}
