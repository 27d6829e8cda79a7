/* Descriptors that threads and signal handlers bind, duplicate and forget at the same time never share an open file. */
#include "check.h"

#include <files/descriptors.h>

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>

enum { THREADS = 4, OWN = 8, ROUNDS = 400000, FIRST = 100 };

static _Thread_local int me;

static void check_one(int fd, uint32_t stamp)
{
    const uint32_t number = ensio_descriptors[fd];
    CHECK(number > ENSIO_LEFT_OUT);
    CHECK(ensio_open_files[number].file == stamp);
    CHECK(ensio_open_files[number].references >= 1);
}

/* Three separate descriptors, of which two stay for a while: the list of unused entries is in another order
 * afterwards, with the same first entry. */
static void handler(int signal)
{
    static _Thread_local uint32_t stamp;
    const int base = 4 * me;
    stamp++;
    for (int i = 0; i < 3; i++)
        ensio_descriptor_bind(base + i, 0x80000000U | stamp, 0, 0);
    for (int i = 0; i < 3; i++)
        check_one(base + i, 0x80000000U | stamp);
    ensio_descriptors_forget(base, base);
    ensio_descriptors_forget(base + 2, base + 2);
    (void)signal;
}

static void *storm(void *which)
{
    const int first = FIRST + (int)(intptr_t)which * 2 * OWN;
    me = (int)(intptr_t)which + 1;
    uint32_t stamps[OWN] = {0}, random = 1 + (uint32_t)(intptr_t)which, stamp = (uint32_t)(intptr_t)which << 24;
    for (int round = 0; round < ROUNDS; round++) {
        random = random * 1664525 + 1013904223;
        const int i = (int)(random >> 16) % OWN, fd = first + i, copy = fd + OWN;
        if (stamps[i]) {
            check_one(fd, stamps[i]);
            ensio_descriptor_duplicated(fd, copy);
            ensio_descriptors_forget((unsigned)fd, (unsigned)fd);
            check_one(copy, stamps[i]);
            ensio_descriptors_forget((unsigned)copy, (unsigned)copy);
            stamps[i] = 0;
        } else {
            stamps[i] = ++stamp;
            CHECK(ensio_descriptor_bind(fd, stamp, 0, 0) > ENSIO_LEFT_OUT);
        }
    }
    for (int i = 0; i < OWN; i++)
        if (stamps[i])
            check_one(first + i, stamps[i]);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    sigset_t alarms;
    CHECK(ensio_descriptors_begin() == 0);
    struct itimerval often = {{0, 50}, {0, 50}};
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = handler, .sa_flags = SA_RESTART}, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (intptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, storm, (void *)i) == 0);
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarms, NULL); /* the threads get them */
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    /* None was lost: no more were ever taken than could be in use at the same time, with some in each handler. */
    uint32_t used = 0;
    for (uint32_t i = 0; i < ENSIO_DESCRIPTORS + 2; i++)
        used += ensio_open_files[i].file != 0;
    CHECK(used <= (THREADS + 1) * (2 * OWN + 4));
    return 0;
}
