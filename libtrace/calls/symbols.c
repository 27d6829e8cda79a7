/* symbols.c: prints the symbols of the call tables, one a line, as options for the linker. Run by the build. */
#include <stdio.h>

#define TRANSFER(call, symbol, ...) puts("-Wl,--wrap=" #symbol);
#define ON_FILE(call, symbol, ...) puts("-Wl,--wrap=" #symbol);
#define SEEK(call, symbol, ...) puts("-Wl,--wrap=" #symbol);
#define OPEN(call, symbol, ...) puts("-Wl,--wrap=" #symbol);
#define OPEN_MODE(call, symbol, ...) puts("-Wl,--wrap=" #symbol);
#define ON_PATH(call, symbol, ...) puts("-Wl,--wrap=" #symbol);
#define OLD_ON_FILE(call, symbol, ...) puts("-Wl,--wrap=" #symbol);
#define OLD_ON_PATH(call, symbol, ...) puts("-Wl,--wrap=" #symbol);
#define FCNTL(call, symbol) puts("-Wl,--wrap=" #symbol);
#define OPENDIR(call, symbol) puts("-Wl,--wrap=" #symbol);
#define READDIR(call, symbol, type) puts("-Wl,--wrap=" #symbol);
#define CLOSEDIR(call, symbol) puts("-Wl,--wrap=" #symbol);
#define CLOSE(call, symbol) puts("-Wl,--wrap=" #symbol);
#define DUP(call, symbol, ...) puts("-Wl,--wrap=" #symbol);
#define FORGET(symbol, ...) puts("-Wl,--wrap=" #symbol);
#define MOVES(symbol, ...) puts("-Wl,--wrap=" #symbol);
#define MOVES_FORMATTED(symbol, ...) puts("-Wl,--wrap=" #symbol);
#define SPAWN(symbol, ...) puts("-Wl,--wrap=" #symbol);
#define END(symbol, ...) puts("-Wl,--wrap=" #symbol);

int main(void)
{
#include "posix.def"
    static const char *const rank[] = {"MPI_Init", "MPI_Init_thread", "MPI_Finalize",
                                       "mpi_init_", "mpi_init_thread_", "mpi_finalize_",
                                       "mpi_init_f08_", "mpi_init_thread_f08_", "mpi_finalize_f08_"};
    for (unsigned i = 0; i < sizeof rank / sizeof *rank; i++)
        printf("-Wl,--wrap=%s\n", rank[i]);
    return 0;
}
