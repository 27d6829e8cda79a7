/* Writes MiB after MiB to a new file, with a pause after each: file, number, pause in us, "wait": until it is killed.
 * Says how many bytes of the node are dirty afterwards. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned long dirty_kib(void)
{
    char line[128];
    unsigned long found = 0;
    FILE *memory = fopen("/proc/meminfo", "r");
    while (memory && fgets(line, sizeof line, memory))
        sscanf(line, "Dirty: %lu", &found);
    if (memory)
        fclose(memory);
    return found;
}

int main(int count, char **arguments)
{
    static char block[1 << 20];
    const int fd = open(arguments[1], O_CREAT | O_WRONLY | O_TRUNC, 0600);
    if (fd < 0 || count < 4)
        return 1;
    memset(block, 1, sizeof block);
    for (int i = 0; i < atoi(arguments[2]); i++) {
        if (write(fd, block, sizeof block) != sizeof block)
            return 1;
        usleep((useconds_t)atoi(arguments[3]));
    }
    printf("%lu\n", dirty_kib() * 1024);
    fflush(stdout);
    if (count > 4)
        pause();
    return 0;
}
