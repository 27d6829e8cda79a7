/* failed_writes FILE: writes that fail, on files that are recorded and on others. Its exit status is the number of
 * calls whose errno is another than expected. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

static int wrong;

static void expect(int failed, int error)
{
    wrong += !failed || errno != error;
}

int main(int count, char **arguments)
{
    char text[4096] = {'x'};
    struct iovec parts[2] = {{text, 100}, {text, 200}};
    int ends[2];
    if (count != 2 || pipe(ends) != 0)
        return 99;
    signal(SIGPIPE, SIG_IGN);

    const int full = open("/dev/full", O_WRONLY), none = open("/dev/null", O_WRONLY);
    for (int i = 0; i < 80; i++)
        expect(write(full, text, sizeof text) < 0, ENOSPC);
    expect(pwrite(full, text, 10, 5) < 0, ENOSPC);
    expect(writev(full, parts, 2) < 0, ENOSPC);
    wrong += write(none, text, 10) != 10; /* succeeds, and is not recorded */
    close(full);
    expect(write(full, text, 7) < 0, EBADF);

    FILE *stream = fopen("/dev/full", "w");
    fputs("some text", stream);
    expect(fflush(stream) != 0, ENOSPC);
    fclose(stream);

    /* A pipe that is full, and one that nothing reads from: neither is a file. */
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    while (write(ends[1], text, sizeof text) > 0)
        ;
    expect(1, EAGAIN);
    close(ends[0]);
    expect(write(ends[1], text, 1) < 0, EPIPE);
    const int kernel = open("/proc/self/comm", O_RDONLY);
    expect(write(kernel, text, 1) < 0, EBADF); /* a setting of the kernel, not data */
    close(kernel);

    const int own = open(arguments[1], O_RDWR | O_CREAT, 0600);
    wrong += write(own, text, 10) != 10;
    close(own);
    return wrong;
}
