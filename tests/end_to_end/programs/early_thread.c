/* Has a thread before the recorder begins, if that is linked: as libraries make them when they are loaded. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static void *wait_for_end(void *unused)
{
    pause();
    return NULL;
}

__attribute__((constructor(101))) static void begin(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, wait_for_end, NULL);
}

int main(int count, char **words)
{
    FILE *file = fopen(words[1], "w");
    fputs("data", file);
    return fclose(file);
}
