/* Programs that could fill a disk or the memory by being recorded: without_bounds WHAT COUNT. Each returns 4.
 *
 *   calls     COUNT pwrite of 10 bytes, then a result of 20 MiB; prints how much of it was written
 *   paths     access on COUNT distinct paths in a folder that does not exist; prints the resident memory in KiB
 *   folders   the same, each path in its own folder
 *   regions   COUNT regions, each with its own name; prints the resident memory
 *   threads   COUNT threads at a time, each with 10 pwrite, three times */
#define _GNU_SOURCE
#include <ensio/ensio.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int file;
static pthread_barrier_t all;

static void make_calls(long count)
{
    static char block[1 << 20];
    int result, written = 0;
    for (long i = 0; i < count; i++)
        pwrite(file, "0123456789", 10, 0);
    result = open("result", O_RDWR | O_CREAT | O_TRUNC, 0644);
    while (written < 20 && write(result, block, sizeof block) == sizeof block)
        written++;
    printf("%d MiB written: %s\n", written, strerror(written < 20 ? errno : 0));
}

static void print_memory(void)
{
    char text[200];
    FILE *status = fopen("/proc/self/status", "r");
    while (fgets(text, sizeof text, status))
        if (strncmp(text, "RssAnon:", 8) == 0)
            printf("%d\n", atoi(text + 8));
}

static void name_paths(long count, const char *pattern)
{
    char text[200];
    for (long i = 0; i < count; i++) {
        snprintf(text, sizeof text, pattern, i);
        access(text, F_OK);
    }
    print_memory();
}

static void name_regions(long count)
{
    char name[64];
    for (long i = 0; i < count; i++) {
        snprintf(name, sizeof name, "region number %ld", i);
        ensio_region_begin(name);
        ensio_region_end(name);
    }
    print_memory();
}

static void *write_a_little(void *unused)
{
    pthread_barrier_wait(&all);
    for (int i = 0; i < 10; i++)
        pwrite(file, "0123456789", 10, 0);
    pthread_barrier_wait(&all);
    return unused;
}

static void make_threads(long count)
{
    pthread_attr_t small;
    pthread_t *threads = malloc(count * sizeof *threads);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 16384);
    pthread_barrier_init(&all, NULL, count);
    for (int round = 0; round < 3; round++) {
        for (long i = 0; i < count; i++)
            if (pthread_create(&threads[i], &small, write_a_little, NULL))
                exit(1);
        for (long i = 0; i < count; i++)
            pthread_join(threads[i], NULL);
    }
}

int main(int argc, char **argv)
{
    const char *what = argv[1];
    const long count = atol(argv[2]);
    file = open("work", O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (strcmp(what, "calls") == 0)
        make_calls(count);
    else if (strcmp(what, "paths") == 0)
        name_paths(count, "no-such-folder/one-below/file-number-%09ld.data");
    else if (strcmp(what, "folders") == 0)
        name_paths(count, "no-such-folder/folder-%09ld/file");
    else if (strcmp(what, "regions") == 0)
        name_regions(count);
    else
        make_threads(count);
    return 4;
}
