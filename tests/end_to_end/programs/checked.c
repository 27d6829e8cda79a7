/* A program to be checked for its use of memory: checked FILE, or checked FILE wrongly. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    char *bytes = calloc(1, 16);
    volatile size_t length = count > 2 ? 17 : 16;
    int fd = open(arguments[1], O_WRONLY | O_CREAT | O_TRUNC, 0600);
    for (int i = 0; i < 100; i++)
        if (write(fd, bytes, 16) != 16)
            return 1;
    if (write(fd, bytes, length) < 0) /* one byte too many: the sanitizer sees it in its own write */
        return 2;
    close(fd);
    free(bytes);
    return 20;
}
