/* symbols.c: prints the symbols of the call tables, one a line, as options for the linker. Run by the build. */
#include <stdio.h>

#define SYMBOL(symbol) puts("-Wl,--wrap=" #symbol);

int main(void)
{
#include "tables.def"
    /* The linker applies --wrap to what shared libraries need too, and would miss the wrappers of MPI calls that only
     * these make. The run-time linker knows nothing of wrappers, and finds what they need as always. */
    puts("-Wl,--allow-shlib-undefined");
    return 0;
}
