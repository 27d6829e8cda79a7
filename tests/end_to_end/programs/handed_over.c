/* Processes that go on as something else: handed_over WHAT FILE. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static const char *path;

static void put(const char *name, int calls)
{
    char whole[4096];
    snprintf(whole, sizeof whole, "%s.%s", path, name);
    int fd = open(whole, O_WRONLY | O_CREAT | O_APPEND, 0600);
    for (int i = 0; i < calls; i++)
        if (write(fd, "x", 1) != 1)
            _exit(99);
    close(fd);
}

/* Each way of exec runs a shell, which is not recorded; the words arrive, and the environment where it is given. */
static void exec(int how)
{
    char *words[] = {"sh", "-c", "test $1$2$WHERE = onetwo$3", "sh", "one", "two", "here", NULL};
    char *environment[] = {"WHERE=here", NULL};
    setenv("WHERE", "here", 1);
    switch (how) {
    case 1:
        execl("/bin/sh", "sh", "-c", words[2], "sh", "one", "two", "here", NULL);
        break;
    case 2:
        execle("/bin/sh", "sh", "-c", words[2], "sh", "one", "two", "here", NULL, environment);
        break;
    case 3:
        execlp("sh", "sh", "-c", words[2], "sh", "one", "two", "here", NULL);
        break;
    case 4:
        execv("/bin/sh", words);
        break;
    case 5:
        execve("/bin/sh", words, environment);
        break;
    case 6:
        execvp("sh", words);
        break;
    case 7:
        execvpe("sh", words, environment);
        break;
    case 8:
        fexecve(open("/bin/sh", O_RDONLY | O_CLOEXEC), words, environment);
        break;
    }
}

static int children(void)
{
    int failed = 0;
    for (int how = 1; how <= 8; how++) {
        int status;
        if (fork() == 0) {
            put("before", 1);
            exec(how);
            _exit(98);
        }
        wait(&status);
        failed += status != 0;
    }
    return failed;
}

/* The exec fails, and the process goes on. */
static int failed_exec(void)
{
    put("before", 1);
    int failed = execl("/nonexistent/program", "program", NULL) == -1 && execlp("/", "/", NULL) == -1;
    put("after", 1);
    return !failed;
}

/* Standard output is a file before, and /dev/null afterwards. */
static int become_daemon(void)
{
    int gone[2];
    char whole[4096];
    if (pipe(gone) != 0 || fork() > 0) { /* the one whose end is waited for is not the daemon's parent */
        char byte;
        close(gone[1]);
        return read(gone[0], &byte, 1) != 0;
    }
    snprintf(whole, sizeof whole, "%s.output", path);
    int fd = open(whole, O_WRONLY | O_CREAT, 0600);
    dup2(fd, 1);
    close(fd);
    if (write(1, "seen", 4) != 4 || daemon(1, 0) != 0)
        _exit(97);
    if (write(1, "into nothing", 12) != 12)
        _exit(96);
    put("daemon", 3);
    exit(0);
}

int main(int count, char **arguments)
{
    (void)count;
    path = arguments[2];
    return strcmp(arguments[1], "children") == 0      ? children()
           : strcmp(arguments[1], "failed_exec") == 0 ? failed_exec()
                                                      : become_daemon();
}
