/* Four threads write 1 KiB each time, 200 times; then the process kills itself: no call is lost. Usage: FILE */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static int fd;

static void *work(void *nothing)
{
    char block[1024] = {0};
    for (int i = 0; i < 200; i++)
        if (write(fd, block, sizeof block) != (ssize_t)sizeof block)
            _exit(1);
    return nothing;
}

int main(int count, char **arguments)
{
    pthread_t threads[4];
    fd = open(arguments[count - 1], O_CREAT | O_APPEND | O_WRONLY, 0644);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    return kill(getpid(), SIGKILL);
}
