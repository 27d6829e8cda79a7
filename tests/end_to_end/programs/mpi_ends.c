/* Ends without MPI_Finalize: by exit, or waits to be killed by the launcher, with its handler of SIGTERM or without. */
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void leave(int number)
{
    exit(number * 0);
}

int main(int count, char **arguments)
{
    MPI_Init(&count, &arguments);
    if (strcmp(arguments[1], "exit") == 0)
        exit(0);
    if (strcmp(arguments[1], "handler") == 0)
        signal(SIGTERM, leave);
    MPI_Barrier(MPI_COMM_WORLD);
    close(open(arguments[2], O_CREAT | O_WRONLY, 0600)); /* ready */
    for (;;)
        sleep(1);
}
