/* Calls that fail between calls that do not: files that are missing, descriptors that are closed, reads at the end.
 * Usage: FILE */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    char block[100] = {0};
    long sum = 0;
    int fd = open(arguments[count - 1], O_CREAT | O_TRUNC | O_RDWR, 0644);
    for (int i = 0; i < 30; i++) {
        char name[40];
        snprintf(name, sizeof name, "missing.%d", i);
        sum += open(name, O_RDONLY);
        sum += write(-1, block, sizeof block);
        sum += write(fd, block, sizeof block);
        sum += read(fd, block, sizeof block);
        sum += pread(fd, block, sizeof block, 0);
    }
    close(fd);
    close(fd);
    return sum == 0;
}
