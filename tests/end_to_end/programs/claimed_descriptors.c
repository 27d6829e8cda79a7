/* Threads write to a file while another one claims descriptors: claimed_descriptors WHAT ROUNDS FOLDER. Prints what
 * became of the program's own file, or of its calls; 4: all is as it was.
 *
 *   replaced   a thread puts copies of one descriptor on the next free numbers (dup2) and closes them
 *   closed     it opens files and closes all from a number on (closefrom)
 *   last       it takes the last number that RLIMIT_NOFILE leaves (dup) */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_BYTES = 1 << 20, CALLS = 2000, COPIES = 200 };

static int out, data, first;
static long wrong;

static void *write_much(void *unused)
{
    char byte = 0;
    for (int i = 0; i < CALLS; i++)
        wrong += pwrite(out, &byte, 1, i % 100) != 1;
    return unused;
}

static void replace(void)
{
    for (int i = 0; i < COPIES; i++) {
        wrong += dup2(data, first) != first;
        wrong += dup2(data, first + 1) != first + 1;
        close(first);
        close(first + 1);
    }
}

static void close_all(void)
{
    for (int i = 0; i < COPIES / 10; i++) {
        wrong += open("precious", O_RDWR) != first;
        closefrom(first);
    }
}

static void take_last(void)
{
    for (int i = 0; i < COPIES; i++) {
        int copy = dup(out);
        wrong += copy != first;
        close(copy);
    }
}

int main(int argc, char **argv)
{
    const char *what = argv[1];
    char *want = malloc(FILE_BYTES), *found = malloc(FILE_BYTES);
    pthread_t threads[2];
    struct stat state;
    if (argc < 4 || chdir(argv[3]))
        return 1;
    out = open("out", O_RDWR | O_CREAT | O_TRUNC, 0644);
    data = open("precious", O_RDWR | O_CREAT | O_TRUNC, 0644);
    first = data + 1;
    memset(want, 'A', FILE_BYTES);
    if (pwrite(data, want, FILE_BYTES, 0) != FILE_BYTES)
        return 1;
    if (strcmp(what, "last") == 0) {
        struct rlimit limit = {(rlim_t)first + 1, (rlim_t)first + 1};
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    for (int round = 0; round < atoi(argv[2]); round++) {
        for (int i = 0; i < 2; i++)
            pthread_create(&threads[i], NULL, write_much, NULL);
        if (strcmp(what, "replaced") == 0)
            replace();
        else if (strcmp(what, "closed") == 0)
            close_all();
        else
            take_last();
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
    }
    if (fstat(data, &state) || pread(data, found, FILE_BYTES, 0) != FILE_BYTES)
        return 1;
    printf("%ld calls went wrong; %ld bytes, %s\n", wrong, (long)state.st_size,
           memcmp(found, want, FILE_BYTES) ? "changed" : "unchanged");
    return 4;
}
