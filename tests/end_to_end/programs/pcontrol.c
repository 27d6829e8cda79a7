/* Names regions as MADbench2 does for IPM, and calls MPI_Pcontrol as other tools' users do. Barriers have both names.
 */
#include <fcntl.h>
#include <mpi.h>
#include <unistd.h>

static void part(const char *name, int fd, int writes)
{
    PMPI_Barrier(MPI_COMM_WORLD);
    MPI_Pcontrol(1, name);
    for (int i = 0; i < writes; i++)
        if (write(fd, name, 3) != 3)
            MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Pcontrol(0, "written");
    MPI_Pcontrol(-1, name);
}

int main(int count, char **arguments)
{
    int rank;
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int fd = open(rank ? "data.1" : "data.0", O_CREAT | O_WRONLY, 0600);
    MPI_Barrier(MPI_COMM_WORLD);
    part("S_w", fd, 4);
    part("W_r", fd, 1);
    part("W_w", fd, 2);
    part("C_r", fd, 3);
    MPI_Pcontrol(1, (char *)8); /* other meanings of other tools */
    MPI_Pcontrol(2, NULL);
    MPI_Pcontrol(1, "");
    MPI_Pcontrol(5, "never opened");
    MPI_Pcontrol(-1, "never opened");
    close(fd);
    MPI_Finalize();
    return 0;
}
