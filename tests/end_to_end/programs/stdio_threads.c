/* Threads that write to one stream: stdio_threads FILE THREADS CALLS. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static FILE *file;
static int calls;

static void *write_lines(void *thread)
{
    for (int i = 0; i < calls; i++)
        fprintf(file, "%c%06d\n", 'a' + (int)(long)thread, i);
    return NULL;
}

int main(int count, char **arguments)
{
    pthread_t threads[16];
    int number = atoi(arguments[2]);
    calls = atoi(arguments[3]);
    file = fopen(arguments[1], "w");
    for (long i = 0; i < number; i++)
        pthread_create(&threads[i], NULL, write_lines, (void *)i);
    for (int i = 0; i < number; i++)
        pthread_join(threads[i], NULL);
    return fclose(file) || count != 4;
}
