/* A program to be checked for its use of memory: checked FILE, or checked FILE wrongly. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *path;

static void *make(void *number)
{
    char name[4200];
    snprintf(name, sizeof name, "%s.%ld", path, (long)number);
    close(open(name, O_WRONLY | O_CREAT, 0600));
    return NULL;
}

int main(int count, char **arguments)
{
    pthread_t threads[4]; /* what the recorder does in them at the same time is not a race of the program */
    path = arguments[1];
    for (long i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, make, (void *)i);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    char *bytes = calloc(1, 16);
    volatile size_t length = count > 2 ? 17 : 16;
    int fd = open(arguments[1], O_WRONLY | O_CREAT | O_TRUNC, 0600);
    for (int i = 0; i < 100; i++)
        if (write(fd, bytes, 16) != 16)
            return 1;
    if (write(fd, bytes, length) < 0) /* one byte too many: the sanitizer sees it in its own write */
        return 2;
    close(fd);
    free(bytes);
    return 20;
}
