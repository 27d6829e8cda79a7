/* Writes as many blocks as each line of its input says, itself or by a child ("child 40"), and answers when they
 * are written. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    int descriptor = open(argv[1], O_CREAT | O_WRONLY | O_TRUNC, 0600);
    char line[64], block[512] = {0};
    off_t offset = 0;
    while (read(0, memset(line, 0, sizeof line), sizeof line - 1) > 0) {
        int is_child = strncmp(line, "child ", 6) == 0;
        pid_t child = is_child ? fork() : -1;
        if (child > 0)
            waitpid(child, NULL, 0);
        for (long left = child > 0 ? 0 : atol(line + 6 * is_child); left > 0; left--, offset += sizeof block)
            if (pwrite(descriptor, block, sizeof block, offset) != sizeof block)
                return 1;
        if (child == 0)
            return close(descriptor);
        if (write(1, "done\n", 5) != 5)
            return 1;
    }
    return close(descriptor);
}
