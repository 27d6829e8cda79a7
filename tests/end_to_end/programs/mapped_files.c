/* Maps files into memory in the folder that it is given, and prints each event that is to be recorded: the file's name,
 * call, offset, bytes asked for, errno. The first argument says what to do. Built also with 64-bit names. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096
#define BOTH (PROT_READ | PROT_WRITE)
#define MANY 5000

static void say(const char *file, const char *call, long offset, size_t bytes, int failed)
{
    printf("%s %s %ld %zu %d\n", file, call, offset, bytes, failed ? errno : 0);
}

static int fresh(const char *name, long pages)
{
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    return ftruncate(fd, pages * PAGE) == 0 ? fd : -1;
}

static char *map(const char *file, int fd, char *at, size_t pages, int flags, long page)
{
    char *got = mmap(at, pages * PAGE, BOTH, flags, fd, page * PAGE);
    say(file, "mmap", page * PAGE, pages * PAGE, got == MAP_FAILED);
    return got;
}

static void unmap(const char *file, char *at, size_t pages, long page)
{
    say(file, "munmap", page * PAGE, pages * PAGE, munmap(at, pages * PAGE) != 0);
}

static void sync_pages(const char *file, char *at, size_t pages, long page)
{
    say(file, "msync", page * PAGE, pages * PAGE, msync(at, pages * PAGE, MS_SYNC) != 0);
}

static void calls(void)
{
    int a = fresh("a", 16), b = fresh("b", 16), only_read = open("a", O_RDONLY), zeros = open("/dev/zero", O_RDWR);
    char *m = map("a", a, NULL, 4, MAP_SHARED, 2);
    strcpy(m + PAGE, "written in memory");
    sync_pages("a", m, 4, 2);
    sync_pages("a", m + PAGE, 1, 3);
    say("a", "munmap", 2 * PAGE + 1, PAGE, munmap(m + 1, PAGE) != 0); /* no page begins there */
    unmap("a", m + PAGE, 1, 3);
    say("a", "msync", 2 * PAGE, 4 * PAGE, msync(m, 4 * PAGE, MS_ASYNC) != 0); /* there is a hole in it now */
    sync_pages("a", m + 2 * PAGE, 2, 4);
    unmap("a", m, 4, 2);

    m = map("a", a, NULL, 2, MAP_PRIVATE, 0);
    char *larger = mremap(m, 2 * PAGE, 9 * PAGE, MREMAP_MAYMOVE);
    say("a", "mremap", 0, 9 * PAGE, larger == MAP_FAILED);
    char *hopeless = mremap(larger, 9 * PAGE, (size_t)1 << 60, MREMAP_MAYMOVE);
    say("a", "mremap", 0, (size_t)1 << 60, hopeless == MAP_FAILED);
    larger = mremap(larger, 9 * PAGE, 3 * PAGE, 0);
    say("a", "mremap", 0, 3 * PAGE, larger == MAP_FAILED);
    munmap(larger + 3 * PAGE, PAGE); /* nothing is there any more */
    unmap("a", larger, 3, 0);

    map("a", only_read, NULL, 1, MAP_SHARED, 0); /* refused */
    map("a", a, NULL, 0, MAP_SHARED, 0);         /* refused */
    mmap(NULL, PAGE, BOTH, MAP_SHARED, -1, 0);   /* refused, and of no file */

    char *memory = mmap(NULL, 8 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    map("a", a, memory, 4, MAP_SHARED | MAP_FIXED, 8);
    map("b", b, memory + PAGE, 1, MAP_SHARED | MAP_FIXED, 5);
    sync_pages("b", memory + PAGE, 1, 5);
    sync_pages("a", memory + 2 * PAGE, 1, 10);
    mmap(memory + 2 * PAGE, PAGE, BOTH, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    mmap(memory + 3 * PAGE, PAGE, BOTH, MAP_PRIVATE | MAP_FIXED, zeros, 0);
    msync(memory + 2 * PAGE, 2 * PAGE, MS_SYNC);
    munmap(memory + 2 * PAGE, 6 * PAGE);
    unmap("a", memory, 1, 8);
    unmap("b", memory + PAGE, 1, 5);

    m = map("a", a, NULL, 2, MAP_SHARED, 0);
    fflush(stdout);
    if (fork() == 0) {
        sync_pages("a", m, 2, 0);
        unmap("a", m, 2, 0);
        fflush(stdout);
        _exit(0);
    }
    wait(NULL);
    unmap("a", m, 2, 0);
}

static void *map_often(void *name)
{
    int fd = fresh(name, 8);
    for (long i = 0; i < 2000; i++) {
        char *memory = mmap(NULL, 4 * PAGE, BOTH, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        char *m = mmap(NULL, 4 * PAGE, BOTH, MAP_SHARED, fd, (i % 5) * PAGE);
        munmap(memory, 4 * PAGE);
        msync(m + PAGE, PAGE, MS_ASYNC);
        munmap(m, PAGE);
        munmap(m + PAGE, 3 * PAGE);
    }
    return NULL;
}

static void threads(void)
{
    pthread_t running[4];
    char *names[] = {"t0", "t1", "t2", "t3"};
    for (int i = 0; i < 4; i++)
        pthread_create(&running[i], NULL, map_often, names[i]);
    for (int i = 0; i < 4; i++)
        pthread_join(running[i], NULL);
}

static void many(void)
{
    static char *places[MANY];
    int fd = fresh("a", 16);
    for (int i = 0; i < MANY; i++)
        places[i] = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, (i % 16) * PAGE);
    for (int i = 0; i < MANY; i++)
        munmap(places[i], PAGE);
}

int main(int count, char **arguments)
{
    if (count != 3 || chdir(arguments[2]) != 0)
        return 2;
    if (strcmp(arguments[1], "calls") == 0)
        calls();
    else if (strcmp(arguments[1], "threads") == 0)
        threads();
    else
        many();
    return 5;
}
