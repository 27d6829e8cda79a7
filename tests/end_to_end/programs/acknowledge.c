/* Writes numbers into a file, one call each, and after each call says through standard output how many calls returned;
 * goes on until it is killed. With a count as second argument it ends by itself after so many. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    int fd = open(arguments[1], O_CREAT | O_WRONLY, 0600);
    uint64_t most = count > 2 ? strtoull(arguments[2], NULL, 10) : UINT64_MAX;
    for (uint64_t number = 1; number <= most; number++) {
        if (pwrite(fd, &number, sizeof number, 0) != sizeof number)
            return 1;
        if (number % 64 == 0 || number < 64) /* past every wrapper */
            syscall(SYS_write, 1, &number, sizeof number);
    }
    return 0;
}
