/* Calls on the file DATA under a model of a file system, one kind a run: under_model DATA KIND. Says what came out. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MIB 1048576

static int data;
static sigjmp_buf away;
static volatile sig_atomic_t handled;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void *read_one(void *at)
{
    char *buffer = malloc(MIB);
    const double begin = now();
    const ssize_t got = pread(data, buffer, MIB, (off_t)(size_t)at * MIB);
    double *took = malloc(sizeof *took);
    *took = got == MIB ? now() - begin : -1;
    free(buffer);
    return took;
}

static double read_s(size_t at)
{
    double *took = read_one((void *)at), seconds = *took;
    free(took);
    return seconds;
}

static void in_handler(int number)
{
    handled += pwrite(data, "h", 1, 0) == 1;
}

static void jump(int number)
{
    siglongjmp(away, 1);
}

static void alarm_in(long milliseconds, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};
    timer_t timer;
    sigaction(SIGALRM, &action, NULL);
    timer_create(CLOCK_MONOTONIC, NULL, &timer);
    timer_settime(timer, 0, &(struct itimerspec){.it_value = {.tv_nsec = milliseconds * 1000000}}, NULL);
}

static int all_read(int threads, double *least)
{
    pthread_t ids[64];
    int right = 0;
    *least = 1e9;
    for (int i = 0; i < threads; i++)
        pthread_create(&ids[i], NULL, read_one, (void *)(size_t)i);
    for (int i = 0; i < threads; i++) {
        void *result;
        pthread_join(ids[i], &result);
        const double took = *(double *)result;
        right += took > 0;
        *least = took < *least ? took : *least;
    }
    return right;
}

int main(int count, char **arguments)
{
    const char *kind = arguments[2];
    double took = 0;
    struct stat status;
    data = open(arguments[1], O_RDWR);
    if (count != 3 || data < 0)
        return 2;
    if (strcmp(kind, "some") == 0) {
        for (size_t i = 0; i < 4; i++)
            took += read_s(i);
        for (int i = 0; i < 4; i++)
            took += 0 * stat(arguments[1], &status);
        printf("%.6f\n", took);
    } else if (strcmp(kind, "handler") == 0) {
        alarm_in(20, in_handler);
        errno = 77;
        took = read_s(0);
        printf("%d %d %.6f\n", (int)handled, errno, took);
    } else if (strcmp(kind, "jump") == 0) {
        if (sigsetjmp(away, 1) == 0) {
            alarm_in(20, jump);
            read_s(0);
            return 3;
        }
        sleep(1); /* the model is done with the call that was left behind */
        took = read_s(1);
        printf("%.6f\n", took);
    } else if (strcmp(kind, "cancel") == 0) {
        pthread_t thread;
        void *result;
        pthread_create(&thread, NULL, read_one, (void *)1);
        usleep(20000);
        pthread_cancel(thread);
        pthread_join(thread, &result);
        took = read_s(2);
        printf("%d %.6f\n", result != PTHREAD_CANCELED, took);
    } else if (strcmp(kind, "threads") == 0) {
        const int right = all_read(4, &took);
        printf("%d %.6f\n", right, took);
    } else if (strcmp(kind, "children") == 0) {
        int ended = 0, state;
        fflush(stdout);
        for (int i = 0; i < 3; i++)
            if (fork() == 0)
                _exit(read_s((size_t)i) >= 0 ? 4 : 5);
        pid_t spawned = vfork();
        if (spawned == 0) {
            execl("/bin/cat", "cat", arguments[1], NULL);
            _exit(6);
        }
        while (wait(&state) > 0)
            ended = ended * 10 + (WIFEXITED(state) ? WEXITSTATUS(state) : 9);
        fprintf(stderr, "%d\n", ended);
    } else if (strcmp(kind, "forever") == 0) {
        puts("begins");
        fflush(stdout);
        read_s(0);
    }
    return close(data);
}
