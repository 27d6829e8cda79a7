/* Calls of MPI-IO that MPI refuses before it looks at the path, the request or the file that it was given: hostile_mpi.
 * Says on a line of each: the call and the class of its error. */
#include <mpi.h>
#include <stdio.h>
#include <sys/mman.h>

#define TRY(call) said(#call, call)

static void said(const char *call, int code)
{
    int class = code;
    if (code != MPI_SUCCESS)
        MPI_Error_class(code, &class);
    printf("%s: %d\n", call, class);
}

int main(int count, char **arguments)
{
    MPI_File file = MPI_FILE_NULL, kept;
    MPI_Request request;
    char block[64] = "data";
    char *const bad = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MPI_Init(&count, &arguments);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    TRY(MPI_File_open(MPI_COMM_NULL, bad, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    TRY(MPI_File_open(MPI_COMM_NULL, NULL, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    TRY(MPI_File_open(MPI_COMM_SELF, "missing", MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    TRY(MPI_File_delete("missing", MPI_INFO_NULL));
    TRY(MPI_File_open(MPI_COMM_SELF, "a.data", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &kept));
    TRY(MPI_File_write_at(kept, 0, block, -1, MPI_BYTE, MPI_STATUS_IGNORE));
    TRY(MPI_File_iwrite_at(kept, 0, block, 10, MPI_BYTE, &request));
    TRY(MPI_Waitall(1, NULL, MPI_STATUSES_IGNORE)); /* while I/O is under way */
    TRY(MPI_Waitall(-1, &request, MPI_STATUSES_IGNORE));
    TRY(MPI_Request_free(NULL));
    TRY(MPI_Wait(&request, MPI_STATUS_IGNORE));
#ifdef OPEN_MPI
    TRY(MPI_File_close(NULL)); /* MPICH looks at it */
#endif
    TRY(MPI_File_close(&kept));
    MPI_Finalize();
    return 5;
}
