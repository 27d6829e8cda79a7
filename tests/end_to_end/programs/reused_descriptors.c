/* Descriptors that end, and begin again as other files, in ways other than a call of close. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static int opened(const char *path)
{
    return open(path, O_CREAT | O_RDWR, 0600);
}

static void put(int fd, int count)
{
    for (int i = 0; i < count; i++)
        if (write(fd, "x", 1) != 1)
            _exit(1);
}

int main(int count, char **arguments)
{
    if (count != 2 || chdir(arguments[1]) != 0)
        return 2;
    FILE *stream = fdopen(opened("a"), "w");
    int fd = fileno(stream);
    put(fd, 1);
    fclose(stream);
    stream = fopen("b", "w"); /* inside the C library: gets the same descriptor */
    if (fileno(stream) != fd)
        return 3;
    put(fd, 2);
    close_range((unsigned)fd, ~0U, 0);
    if (opened("c") != fd)
        return 4;
    put(fd, 3);
    closefrom(fd);
    DIR *folder = opendir(".");
    if (dirfd(folder) != fd)
        return 5;
    closedir(folder);
    stream = fopen("d", "w");
    put(fileno(stream), 4);
    freopen("e", "w", stream);
    put(fileno(stream), 5);
    int pipes[2];
    fclose(stream);
    if (pipe(pipes) != 0)
        return 6;
    put(pipes[1], 6);
    return 0;
}
