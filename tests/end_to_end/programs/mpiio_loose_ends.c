/* Requests of I/O that are completed by another thread, given up, or never waited for; a hundred at once, and those
 * that come by one of the Test calls. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define MANY 100

static MPI_File file;
static char block[64];

static void *wait_here(void *request)
{
    MPI_Wait(request, MPI_STATUS_IGNORE);
    return NULL;
}

int main(int count, char **arguments)
{
    static MPI_Request requests[MANY];
    int provided, done = 0, ended, places[MANY];
    char path[4096];
    pthread_t thread;
    MPI_Init_thread(&count, &arguments, MPI_THREAD_MULTIPLE, &provided);
    snprintf(path, sizeof path, "%s/data", arguments[1]);
    MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    for (int i = 0; i < MANY; i++)
        if (MPI_File_iwrite_at(file, 64 * i, block, sizeof block, MPI_BYTE, &requests[i]) != MPI_SUCCESS)
            return 2;
    MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
    MPI_File_iread_at(file, 64, block, 10, MPI_BYTE, &requests[0]);
    while (!done)
        MPI_Testall(1, requests, &done, MPI_STATUSES_IGNORE);
    MPI_File_iread_at(file, 128, block, 30, MPI_BYTE, &requests[2]);
    for (ended = 0; ended < 1;)
        MPI_Testsome(3, requests, &ended, places, MPI_STATUSES_IGNORE);
    if (provided == MPI_THREAD_MULTIPLE) {
        MPI_File_iwrite_at(file, 0, block, 11, MPI_BYTE, &requests[0]);
        pthread_create(&thread, NULL, wait_here, &requests[0]);
        pthread_join(thread, NULL);
    } else {
        MPI_File_write_at(file, 0, block, 11, MPI_BYTE, MPI_STATUS_IGNORE);
    }
    if (count > 2) { /* what MPI says no program should do */
        MPI_File_iwrite_at(file, 0, block, 12, MPI_BYTE, &requests[0]);
        if (strcmp(arguments[2], "free") == 0)
            MPI_Request_free(&requests[0]);
    } else {
        MPI_File_close(&file);
    }
    MPI_Finalize();
    return 0;
}
