/* Many writes of one size, every thousandth of which is slow: it goes beyond the limit on the size of files, and the
 * handler of the signal that this raises, which runs before the call returns, takes its time. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static void be_slow(int number)
{
    usleep((unsigned)number * 0 + 2000);
}

int main(int count, char **arguments)
{
    struct rlimit limit = {1L << 30, 1L << 30};
    int fd = open(arguments[1], O_RDWR | O_CREAT | O_TRUNC, 0600), calls = atoi(arguments[2]);
    signal(SIGXFSZ, be_slow);
    setrlimit(RLIMIT_FSIZE, &limit);
    for (int i = 1; i <= calls; i++)
        pwrite(fd, "12345678", 8, i % 1000 ? i : 2L << 30);
    return count == 3 ? 0 : 2;
}
