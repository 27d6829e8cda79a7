/* The duration of each of COUNT calls: pfs_delay stat|pread FILE COUNT BYTES. Prints a line of nanoseconds for each. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

int main(int count, char **arguments)
{
    if (count != 5)
        return 2;
    const int reads = strcmp(arguments[1], "pread") == 0, calls = atoi(arguments[3]);
    const size_t bytes = (size_t)atol(arguments[4]);
    const int fd = open(arguments[2], O_RDONLY);
    int64_t *took = calloc((size_t)calls, sizeof *took);
    char *buffer = malloc(bytes);
    struct stat status;
    int failed = fd < 0 || !took || !buffer;
    for (int i = 0; i < calls && !failed; i++) {
        const int64_t begin = now_ns();
        failed = reads ? pread(fd, buffer, bytes, 0) != (ssize_t)bytes : stat(arguments[2], &status) != 0;
        took[i] = now_ns() - begin;
    }
    for (int i = 0; i < calls && !failed; i++)
        printf("%lld\n", (long long)took[i]);
    free(took);
    free(buffer);
    return failed;
}
