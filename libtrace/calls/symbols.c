/* symbols.c: prints the symbols of the call tables, one a line, as options for the linker. Run by the build. */
#include <stdio.h>

#define SYMBOL(symbol) puts("-Wl,--wrap=" #symbol);

int main(void)
{
#include "tables.def"
    static const char *const rank[] = {"MPI_Init", "MPI_Init_thread", "MPI_Finalize",
                                       "mpi_init_", "mpi_init_thread_", "mpi_finalize_",
                                       "mpi_init_f08_", "mpi_init_thread_f08_", "mpi_finalize_f08_"};
    for (unsigned i = 0; i < sizeof rank / sizeof *rank; i++)
        printf("-Wl,--wrap=%s\n", rank[i]);
    return 0;
}
