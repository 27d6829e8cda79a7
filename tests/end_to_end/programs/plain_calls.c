/* Plain calls on files of a folder, of two threads and a child: for tracers that see less than ensio does. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static char buffer[8192];
static const char *folder;

static void *work(void *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, (const char *)name);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
    for (int i = 0; i < 20; i++)
        write(fd, buffer, 1000 + i);
    lseek(fd, 500, SEEK_SET);
    while (read(fd, buffer, 3000) > 0)
        ;
    pwrite(fd, buffer, 77, 123456);
    pread(fd, buffer, 100, 123400);
    fsync(fd);
    close(fd);
    return NULL;
}

int main(int count, char **arguments)
{
    (void)count;
    folder = arguments[1];
    char path[4096];
    snprintf(path, sizeof path, "%s/stream", folder);
    work("a");
    pthread_t thread;
    pthread_create(&thread, NULL, work, "b");
    pthread_join(thread, NULL);
    FILE *stream = fopen(path, "w");
    fwrite(buffer, 10, 300, stream);
    fclose(stream);
    if (fork() == 0) {
        work("c");
        return 0;
    }
    wait(NULL);
    return 0;
}
