/* Writes records through a stream with a separate buffer of the given size (0: the default). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    const size_t buffer = strtoul(argv[1], NULL, 10), record = 256;
    const long count = strtol(argv[2], NULL, 10);
    char *bytes = calloc(1, record), *room = malloc(buffer ? buffer : 1);
    FILE *stream = fopen(argv[3], "w");
    if (!stream || argc != 4)
        return 1;
    if (buffer)
        setvbuf(stream, room, _IOFBF, buffer);
    for (long i = 0; i < count; i++)
        fwrite(bytes, 1, record, stream);
    return fclose(stream);
}
