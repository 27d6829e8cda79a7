/* A library that is loaded and unloaded while a program runs. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

void plugin_put(const char *path)
{
    char whole[4096];
    snprintf(whole, sizeof whole, "%s.plugin", path);
    int fd = open(whole, O_WRONLY | O_CREAT | O_APPEND, 0600);
    write(fd, "xyz", 3);
    close(fd);
}
