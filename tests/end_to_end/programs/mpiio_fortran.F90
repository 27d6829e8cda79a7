! MPI-IO and waiting from Fortran, by two tasks; compiled with the module mpi_f08 (F08 is defined) or mpi. Each task says on a
! its own log what it did: name, offset, bytes asked for, bytes moved.
program mpiio_fortran
#ifdef F08
  use mpi_f08
  implicit none
#define HANDLE(kind) type(kind)
#define STATUS_OF type(MPI_Status)
#define STATUSES_OF(n) type(MPI_Status), dimension(n)
#else
  use mpi
  implicit none
#define HANDLE(kind) integer
#define STATUS_OF integer, dimension(MPI_STATUS_SIZE)
#define STATUSES_OF(n) integer, dimension(MPI_STATUS_SIZE, n)
#endif
  HANDLE(MPI_File) :: file
  HANDLE(MPI_Datatype) :: strided
  HANDLE(MPI_Request) :: requests(3)
  HANDLE(MPI_Info) :: info
  STATUS_OF :: status
  STATUSES_OF(3) :: statuses
  integer :: data(100), all(200), error, rank, place, ended, places(3)
  integer(MPI_OFFSET_KIND) :: mine, size
  integer(MPI_ADDRESS_KIND) :: from, extent
  logical :: flag
  character(len=1000) :: folder

  data = 7
  call get_command_argument(1, folder)
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  open(unit=10, file=trim(folder)//"/log."//char(48 + rank))
  mine = 4000 * rank
  call MPI_Info_create(info, error)
  call MPI_Info_set(info, "cb_nodes", "1", error)
  call MPI_File_open(MPI_COMM_WORLD, trim(folder)//"/data  ", MPI_MODE_CREATE + MPI_MODE_RDWR, info, file, error)
  call did("MPI_File_open", -1, 0, 0)
  size = 20000
  call MPI_File_set_size(file, size, error)
  call did("MPI_File_set_size", 20000, 0, 0)
  call MPI_File_write_at(file, mine, data, 100, MPI_INTEGER, status, error)
  call did("MPI_File_write_at", 4000 * rank, 400, 400)
  call MPI_File_write_at_all(file, mine, data, 100, MPI_INTEGER, MPI_STATUS_IGNORE, error)
  call did("MPI_File_write_at_all", 4000 * rank, 400, 400)
  call MPI_File_seek(file, mine, MPI_SEEK_SET, error)
  call did("MPI_File_seek", 4000 * rank, 0, 0)
  call MPI_File_write(file, data, 10, MPI_INTEGER, MPI_STATUS_IGNORE, error)
  call did("MPI_File_write", 4000 * rank, 40, 40)
  call MPI_File_write_all(file, data, 10, MPI_INTEGER, MPI_STATUS_IGNORE, error)
  call did("MPI_File_write_all", 4000 * rank + 40, 40, 40)
  call MPI_File_write_shared(file, data, 10, MPI_INTEGER, MPI_STATUS_IGNORE, error)
  call did("MPI_File_write_shared", -1, 40, 40)
  call MPI_Barrier(MPI_COMM_WORLD, error)
  call did("MPI_Barrier", -1, 0, 0)
  call MPI_File_write_ordered(file, data, 10, MPI_INTEGER, MPI_STATUS_IGNORE, error)
  call did("MPI_File_write_ordered", -1, 40, 40)
  call MPI_File_iwrite_at(file, mine, data, 10, MPI_INTEGER, requests(1), error)
  call MPI_File_iwrite_at(file, mine + 40, data, 10, MPI_INTEGER, requests(2), error)
  requests(3) = MPI_REQUEST_NULL
  call MPI_Waitall(3, requests, MPI_STATUSES_IGNORE, error)
  call did("MPI_File_iwrite_at", 4000 * rank, 40, 40)
  call did("MPI_File_iwrite_at", 4000 * rank + 40, 40, 40)
  call did("MPI_Waitall", -1, 0, 0)
  call MPI_File_iwrite(file, data, 5, MPI_INTEGER, requests(2), error)
  requests(1) = MPI_REQUEST_NULL
  call MPI_Waitsome(3, requests, ended, places, statuses, error)
  call did("MPI_File_iwrite", 4000 * rank + 80, 20, 20)
  call did("MPI_Waitsome", -1, 0, 0)
  call MPI_File_iread_at(file, mine, all, 10, MPI_INTEGER, requests(1), error)
  flag = .false.
  do while (.not. flag)
    call MPI_Test(requests(1), flag, status, error)
  end do
  call did("MPI_File_iread_at", 4000 * rank, 40, 40)
  call did("MPI_Test", -1, 0, 0)
  call MPI_File_iread_at_all(file, mine, all, 10, MPI_INTEGER, requests(1), error)
  call MPI_Waitany(1, requests, place, MPI_STATUS_IGNORE, error)
  call did("MPI_File_iread_at_all", 4000 * rank, 40, 40)
  call did("MPI_Waitany", -1, 0, 0)
  call MPI_File_read_at_all_begin(file, mine, all, 10, MPI_INTEGER, error)
  call MPI_File_read_at_all_end(file, all, MPI_STATUS_IGNORE, error)
  call did("MPI_File_read_at_all_begin", 4000 * rank, 40, 40)
  call did("MPI_File_read_at_all_end", -1, 0, 0)
  call MPI_File_sync(file, error)
  call did("MPI_File_sync", -1, 0, 0)

  ! Of every 8 bytes, 4 are a task's.
  from = 0
  extent = 8
  call MPI_Type_create_resized(MPI_INTEGER, from, extent, strided, error)
  call MPI_Type_commit(strided, error)
  mine = 4 * rank
  call MPI_File_set_view(file, mine, MPI_INTEGER, strided, "native", MPI_INFO_NULL, error)
  call did("MPI_File_set_view", 4 * rank, 8, 0)
  call MPI_File_read_all(file, all, 10, MPI_INTEGER, status, error)
  call did("MPI_File_read_all", 4 * rank, 40, 40)
  mine = 10
  call MPI_File_read_at(file, mine, all, 1, MPI_INTEGER, status, error)
  call did("MPI_File_read_at", 4 * rank + 80, 4, 4)
  call MPI_File_close(file, error)
  call did("MPI_File_close", -1, 0, 0)
  call MPI_Type_free(strided, error)
  call MPI_Info_free(info, error)

  call MPI_Bcast(data, 10, MPI_INTEGER, 0, MPI_COMM_WORLD, error)
  call did("MPI_Bcast", -1, 40, 0)
  call MPI_Allreduce(data, all, 10, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
  call did("MPI_Allreduce", -1, 40, 0)
  call MPI_Allreduce(MPI_IN_PLACE, data, 10, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
  call did("MPI_Allreduce", -1, 40, 0)
  if (rank == 0) call MPI_Send(data, 10, MPI_INTEGER, 1, 5, MPI_COMM_WORLD, error)
  if (rank == 1) call MPI_Recv(data, 10, MPI_INTEGER, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
  if (rank == 1) call did("MPI_Recv", -1, 40, 0)
  call MPI_Sendrecv(data, 2, MPI_INTEGER, 1 - rank, 6, all, 4, MPI_INTEGER, 1 - rank, 6, MPI_COMM_WORLD, status, error)
  call did("MPI_Sendrecv", -1, 24, 0)
  call MPI_Gather(data, 1, MPI_INTEGER, all, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, error)
  call did("MPI_Gather", -1, 0, 0)
  if (all(1) < 0 .or. data(1) /= 14) call MPI_Abort(MPI_COMM_WORLD, 3, error)
  call MPI_Barrier(MPI_COMM_WORLD, error)
  call did("MPI_Barrier", -1, 0, 0)
  if (rank == 0) then
    call MPI_File_delete(trim(folder)//"/data", MPI_INFO_NULL, error)
    call did("MPI_File_delete", -1, 0, 0)
  end if
  close(10)
  call MPI_Finalize(error)

contains

  subroutine did(name, offset, asked, moved)
    character(len=*), intent(in) :: name
    integer, intent(in) :: offset, asked, moved
    if (error /= MPI_SUCCESS) then
      print *, name, " failed"
      call MPI_Abort(MPI_COMM_WORLD, 2, error)
    end if
    write (10, "(a,3(1x,i0))") name, offset, asked, moved
  end subroutine did
end program mpiio_fortran
