/* A program with its own allocator, which maps and unmaps memory for every piece, and gives up where it is called again
 * from inside itself. It is called before any constructor runs. Writes a file through memory, and prints how often it
 * allocated. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HEAD 64

static _Thread_local int inside;
static int count;

static void enter(void)
{
    if (inside++)
        abort();
}

void *malloc(size_t bytes)
{
    enter();
    char *piece = mmap(NULL, bytes + HEAD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    inside--;
    __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
    if (piece == MAP_FAILED)
        return NULL;
    *(size_t *)piece = bytes;
    return piece + HEAD;
}

void free(void *piece)
{
    if (!piece)
        return;
    enter();
    char *start = (char *)piece - HEAD;
    munmap(start, *(size_t *)start + HEAD);
    inside--;
}

void *calloc(size_t items, size_t bytes)
{
    return malloc(items * bytes);
}

void *realloc(void *piece, size_t bytes)
{
    void *larger = malloc(bytes);
    if (piece && larger) {
        size_t old = *(size_t *)((char *)piece - HEAD);
        memcpy(larger, piece, old < bytes ? old : bytes);
        free(piece);
    }
    return larger;
}

static void *work(void *path)
{
    for (int i = 0; i < 100; i++) {
        int fd = open(path, O_RDWR | O_CREAT, 0600);
        if (ftruncate(fd, 8192) != 0)
            exit(1);
        char *memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        char *text = malloc(100);
        memcpy(memory + 4096, strcpy(text, "through memory"), 15);
        free(text);
        if (msync(memory, 8192, MS_ASYNC) != 0 || munmap(memory, 8192) != 0 || close(fd) != 0)
            exit(1);
    }
    return NULL;
}

int main(int arguments, char **argument)
{
    pthread_t thread;
    if (arguments != 2 || pthread_create(&thread, NULL, work, argument[1]) != 0)
        return 2;
    work(argument[1]);
    pthread_join(thread, NULL);
    printf("%s\n", count > 200 ? "allocated" : "nothing");
    return 5;
}
