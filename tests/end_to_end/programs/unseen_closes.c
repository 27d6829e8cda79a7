/* Descriptors that are closed by raw system calls come back as something that is not a file: unseen_closes FILE. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

static const char *path;

/* Opens two files, and closes them past the C library: their numbers are the next that the kernel gives. */
static void leave_two(void)
{
    int first = open(path, O_RDWR | O_APPEND), second = open(path, O_RDWR | O_APPEND);
    if (write(first, "f", 1) != 1 || write(second, "f", 1) != 1)
        _exit(99);
    syscall(SYS_close, first);
    syscall(SYS_close, second);
}

static void use(int fd)
{
    char bytes[8] = {1};
    if (fd < 0)
        _exit(98);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    ssize_t moved = write(fd, bytes, sizeof bytes);
    moved += read(fd, bytes, sizeof bytes);
    (void)moved;
    close(fd);
}

int main(int count, char **arguments)
{
    int pair[2];
    sigset_t none;
    sigemptyset(&none);
    signal(SIGPIPE, SIG_IGN);
    path = arguments[count - 1];
    close(open(path, O_CREAT | O_RDWR | O_TRUNC, 0600));

    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof here;
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = socket(AF_INET, SOCK_STREAM, 0),
        two = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&here, length) != 0 || listen(listener, 2) != 0 ||
        getsockname(listener, (struct sockaddr *)&here, &length) != 0 ||
        connect(one, (struct sockaddr *)&here, length) != 0 || connect(two, (struct sockaddr *)&here, length) != 0)
        return 97;
    leave_two(), use(accept(listener, NULL, NULL));
    leave_two(), use(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
    leave_two(), use(socket(AF_UNIX, SOCK_STREAM, 0));
    leave_two(), socketpair(AF_UNIX, SOCK_STREAM, 0, pair), use(pair[0]), use(pair[1]);
    leave_two(), pipe(pair), use(pair[1]), use(pair[0]);
    leave_two(), pipe2(pair, O_CLOEXEC), use(pair[1]), use(pair[0]);
    leave_two(), use(eventfd(0, 0));
    leave_two(), use(epoll_create(1));
    leave_two(), use(epoll_create1(0));
    leave_two(), use(timerfd_create(CLOCK_MONOTONIC, 0));
    leave_two(), use(signalfd(-1, &none, 0));
    leave_two(), use(inotify_init());
    leave_two(), use(inotify_init1(0));
    leave_two(), use(memfd_create("memory", 0));
    leave_two(), use(posix_openpt(O_RDWR | O_NOCTTY));
    return 20;
}
