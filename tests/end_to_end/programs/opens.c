/* opens.c: opens files in every way; the name of a file begins with the access that the program asks for. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    MPI_Init(&count, &arguments);
    char name[] = "READ_WRITE-mkostemp-XXXXXX";
    const int made = open("WRITE_ONLY-open", O_CREAT | O_WRONLY, 0600);
    FILE *streams[] = {fopen("WRITE_ONLY-fopen", "w"),     fopen("READ_WRITE-fopen", "w+"),
                       fopen("WRITE_ONLY-append", "a"),    fopen("READ_WRITE-append", "a+e"),
                       fopen("/usr/include/stdio.h", "r"), fdopen(made, "w"),
                       fopen("READ_WRITE-fopen", "r+"),    freopen("WRITE_ONLY-freopen", "w", stdin)};
    close(open("READ_WRITE-openat", O_CREAT | O_RDWR, 0600));
    close(creat("WRITE_ONLY-creat", 0600));
    close(mkostemp(name, O_SYNC));
    symlink("WRITE_ONLY-creat", "READ_ONLY-link");
    close(openat(AT_FDCWD, "READ_ONLY-link", O_RDONLY));
    for (unsigned i = 0; i < sizeof streams / sizeof *streams; i++)
        fclose(streams[i]);
    static const struct {
        const char *path;
        int mode;
    } of_mpi[] = {{"WRITE_ONLY-mpi", MPI_MODE_CREATE | MPI_MODE_WRONLY},
                  {"READ_WRITE-mpi", MPI_MODE_CREATE | MPI_MODE_RDWR},
                  {"READ_ONLY-link", MPI_MODE_RDONLY}};
    for (unsigned i = 0; i < sizeof of_mpi / sizeof *of_mpi; i++) {
        MPI_File file;
        MPI_File_open(MPI_COMM_SELF, of_mpi[i].path, of_mpi[i].mode, MPI_INFO_NULL, &file);
        MPI_File_close(&file);
    }
    MPI_Finalize();
    return 0;
}
