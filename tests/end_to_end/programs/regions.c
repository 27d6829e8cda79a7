/* Phases "setup" and "work"; in each of ARGUMENT threads, regions "outer" around two of "inner", each with one write;
 * then, in the main thread, a region whose end never comes. With a second argument, waits in it to be killed. Prints
 * how many nanoseconds the phases and the outer regions of the main thread took. */
#include <ensio/ensio.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int fd, failed;

static long long now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void *work(void *taken_ns)
{
    for (int i = 0; i < 3; i++) {
        long long start = now_ns();
        ensio_region_begin("outer");
        for (int j = 0; j < 2; j++) {
            ensio_region_begin("inner");
            failed |= write(fd, "abcd", 4) != 4;
            usleep(2000);
            ensio_region_end("inner");
        }
        ensio_region_end("outer");
        ensio_region_end("never begun");
        *(long long *)taken_ns += now_ns() - start;
    }
    return NULL;
}

int main(int count, char **arguments)
{
    long long taken_ns[9] = {0}, start = now_ns(), setup;
    pthread_t threads[8];
    int others = atoi(arguments[1]) - 1;
    ensio_phase("setup");
    fd = open("regions.out", O_CREAT | O_WRONLY | O_APPEND, 0600);
    usleep(5000);
    ensio_phase("work");
    setup = now_ns() - start;
    for (int i = 0; i < others; i++)
        pthread_create(&threads[i], NULL, work, &taken_ns[i + 1]);
    work(&taken_ns[0]);
    for (int i = 0; i < others; i++)
        pthread_join(threads[i], NULL);
    ensio_region_begin("left open");
    failed |= write(fd, "z", 1) != 1;
    printf("%lld %lld %lld\n", setup, taken_ns[0], now_ns() - start);
    fflush(stdout);
    if (count > 2)
        pause();
    return failed;
}
