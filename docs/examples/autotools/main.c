#include <ensio/ensio.h>
#include <stdio.h>

int main(void)
{
    FILE *file = fopen("state", "w");
    ensio_region_begin("checkpoint");
    fputs("state\n", file);
    fclose(file);
    ensio_region_end("checkpoint");
    return 0;
}
