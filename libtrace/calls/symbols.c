/* symbols.c: prints the symbols of the call tables as linker options. The build runs it. */
#include <stdio.h>

#define SYMBOL(symbol) puts("-Wl,--wrap=" #symbol);
/* Some came with glibc 2.34: the recorder's references are weak, and would bring none from a static library. */
#define FORGET(symbol, ...) \
    SYMBOL(symbol) \
    puts("-Wl,-u," #symbol);

int main(void)
{
#include "tables.def"
    /* The linker also applies --wrap to references from shared libraries, and would report missing wrappers for MPI
     * calls that only these make. The run-time linker ignores wrappers and resolves such references as usual. */
    puts("-Wl,--allow-shlib-undefined");
    return 0;
}
