/* Rank 0 starts two processes by MPI_Comm_spawn; every process writes 10 bytes into a separate file. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    MPI_Comm parent, children;
    int rank;
    char name[32];
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(name, sizeof name, "%s.%d", parent == MPI_COMM_NULL ? "parent" : "child", rank);
    int file = open(name, O_WRONLY | O_CREAT, 0600);
    int wrong = write(file, "0123456789", 10) != 10;
    close(file);
    if (parent == MPI_COMM_NULL)
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
    MPI_Finalize();
    return wrong;
}
