/* Checks every result; 9: it got all, 6: no MiB of memory. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(void)
{
    static char bytes[1000];
    const int fd = open("written", O_CREAT | O_TRUNC | O_RDWR, 0600);
    if (fd < 0 || write(fd, bytes, sizeof bytes) != sizeof bytes || close(fd))
        return 2;
    FILE *stream = fopen("printed", "w");
    if (!stream)
        return 3;
    if (fprintf(stream, "%d\n", fd) < 0 || fclose(stream))
        return 4;
    char *volatile memory = malloc(1 << 20);
    if (!memory)
        return 6;
    memset(memory, 1, 1 << 20);
    free(memory);
    return 9;
}
