/* Makes COUNT writes of 4 KiB to standard output, and no other call: calls COUNT > FILE. */
#include <stdlib.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    static char block[4096];
    long writes = count > 1 ? atol(arguments[1]) : 1;
    for (long i = 0; i < writes; i++)
        if (write(STDOUT_FILENO, block, sizeof block) != (ssize_t)sizeof block)
            return 1;
    return 0;
}
