/* One file, written by a process and its children, who come about in every way; prints nothing, returns 5. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void put(int fd, const char *text)
{
    if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        abort();
}

int main(int count, char **arguments)
{
    if (count == 3) { /* the program that children turn into */
        int fd = open(arguments[2], O_WRONLY | O_APPEND);
        put(fd, "exec");
        return close(fd);
    }
    int fd = open(arguments[1], O_CREAT | O_RDWR | O_TRUNC, 0600);
    char *again[] = {arguments[0], "child", arguments[1], NULL};
    put(fd, "parent");
    pid_t child = fork();
    if (child == 0) {
        put(fd, "forked");
        char path[4096];
        snprintf(path, sizeof path, "%s.child", arguments[1]);
        int own = open(path, O_CREAT | O_WRONLY, 0600);
        put(own, "own");
        close(own);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    put(fd, "after");
    child = vfork();
    if (child == 0) {
        dup2(fd, 60);
        close(fd);
        execv(arguments[0], again);
        _exit(1);
    }
    waitpid(child, NULL, 0);
    lseek(fd, 0, SEEK_END);
    put(fd, "vforked");
    posix_spawn(&child, arguments[0], NULL, NULL, again, environ);
    waitpid(child, NULL, 0);
    lseek(fd, 0, SEEK_END);
    put(fd, "end");
    return 5;
}
