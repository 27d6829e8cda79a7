/* Calls inside a call, at every run: what fprintf prints for %W comes from a function of ours, which writes a file. */
#include <fcntl.h>
#include <printf.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int inner;

static int print(FILE *stream, const struct printf_info *info, const void *const *arguments)
{
    if (write(inner, "inside", 6) != 6)
        abort();
    return fputs("outside", stream) < 0 ? -1 : 7;
}

static int describe(const struct printf_info *info, size_t count, int *types, int *size)
{
    if (count > 0)
        types[0] = PA_INT, size[0] = sizeof(int);
    return 1;
}

int main(int count, char **arguments)
{
    char path[4096];
    register_printf_specifier('W', print, describe);
    snprintf(path, sizeof path, "%s/inner", arguments[1]);
    inner = open(path, O_CREAT | O_WRONLY, 0600);
    snprintf(path, sizeof path, "%s/outer", arguments[1]);
    FILE *outer = fopen(path, "w");
    for (int i = 0; i < atoi(arguments[2]); i++)
        if (fprintf(outer, "%W\n", i) != 8)
            return 1;
    return fclose(outer) != 0 || close(inner) != 0;
}
