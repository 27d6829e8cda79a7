! Messages and access to another task's memory from Fortran, by two tasks; compiled with the module mpi_f08 (F08 is defined) or mpi.
! Each task writes a log of what it did: name, offset, bytes, 0.
program mpimsg_fortran
#ifdef F08
  use mpi_f08
  implicit none
#define HANDLE(kind) type(kind)
#else
  use mpi
  implicit none
#define HANDLE(kind) integer
#endif
  HANDLE(MPI_Request) :: requests(2)
  HANDLE(MPI_Message) :: message
  HANDLE(MPI_Win) :: window
  HANDLE(MPI_Comm) :: alike
  integer, asynchronous :: data(20), got(20), memory(20)
  integer :: error, rank, other, i, counts(2), places(2)
  integer(MPI_ADDRESS_KIND) :: size, place
  logical :: flag
  character(len=1000) :: folder

  call get_command_argument(1, folder)
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  open(unit=10, file=trim(folder)//"/log."//char(48 + rank))
  other = 1 - rank
  data = [(100 * rank + i, i = 1, 20)]

  call MPI_Irecv(got, 20, MPI_INTEGER, other, 1, MPI_COMM_WORLD, requests(1), error)
  call did("MPI_Irecv", 80)
  call MPI_Isend(data, 20, MPI_INTEGER, other, 1, MPI_COMM_WORLD, requests(2), error)
  call did("MPI_Isend", 80)
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, error)
  call did("MPI_Waitall", 0)
  call check
  call MPI_Irecv(got, 20, MPI_INTEGER, other, 2, MPI_COMM_WORLD, requests(1), error)
  call did("MPI_Irecv", 80)
  call MPI_Send(data, 20, MPI_INTEGER, other, 2, MPI_COMM_WORLD, error)
  call did("MPI_Send", 80)
  flag = .false.
  do while (.not. flag)
    call MPI_Test(requests(1), flag, MPI_STATUS_IGNORE, error)
  end do
  call did("MPI_Test", 0)
  call check
  call MPI_Send_init(data, 20, MPI_INTEGER, other, 3, MPI_COMM_WORLD, requests(1), error)
  call MPI_Recv_init(got, 20, MPI_INTEGER, other, 3, MPI_COMM_WORLD, requests(2), error)
  call MPI_Startall(2, requests, error)
  call did("MPI_Startall", 0)
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, error)
  call did("MPI_Waitall", 0)
  call check
  call MPI_Start(requests(2), error)
  call did("MPI_Start", 0)
  call MPI_Ssend(data, 20, MPI_INTEGER, other, 3, MPI_COMM_WORLD, error)
  call did("MPI_Ssend", 80)
  call MPI_Wait(requests(2), MPI_STATUS_IGNORE, error)
  call did("MPI_Wait", 0)
  call check
  call MPI_Request_free(requests(1), error)
  call MPI_Request_free(requests(2), error)
  got = data
  call MPI_Sendrecv_replace(got, 20, MPI_INTEGER, other, 4, other, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
  call did("MPI_Sendrecv_replace", 80)
  call check
  call MPI_Isend(data, 20, MPI_INTEGER, other, 5, MPI_COMM_WORLD, requests(1), error)
  call did("MPI_Isend", 80)
  call MPI_Mprobe(other, 5, MPI_COMM_WORLD, message, MPI_STATUS_IGNORE, error)
  call did("MPI_Mprobe", 0)
  call MPI_Imrecv(got, 20, MPI_INTEGER, message, requests(2), error)
  call did("MPI_Imrecv", 80)
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, error)
  call did("MPI_Waitall", 0)
  call check

  counts = 10
  places = [0, 10]
  call MPI_Ibarrier(MPI_COMM_WORLD, requests(1), error)
  call did("MPI_Ibarrier", 0)
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE, error)
  call did("MPI_Wait", 0)
  call MPI_Iallreduce(data, got, 20, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(1), error)
  call did("MPI_Iallreduce", 80)
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE, error)
  call did("MPI_Wait", 0)
  call MPI_Ialltoallv(data, counts, places, MPI_INTEGER, got, counts, places, MPI_INTEGER, MPI_COMM_WORLD, requests(1), error)
  call did("MPI_Ialltoallv", 0)
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE, error)
  call did("MPI_Wait", 0)

  size = 80
  place = 0
  call MPI_Win_create(memory, size, 4, MPI_INFO_NULL, MPI_COMM_WORLD, window, error)
  call did("MPI_Win_create", 0)
  call MPI_Win_fence(0, window, error)
  call did("MPI_Win_fence", 0)
  call MPI_Put(data, 20, MPI_INTEGER, other, place, 20, MPI_INTEGER, window, error)
  call did("MPI_Put", 80)
  call MPI_Win_fence(0, window, error)
  call did("MPI_Win_fence", 0)
  got = memory
  call check
  call MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window, error)
  call did("MPI_Win_lock", 0)
  call MPI_Get(got, 20, MPI_INTEGER, rank, place, 20, MPI_INTEGER, window, error)
  call did("MPI_Get", 80)
  call MPI_Win_unlock(rank, window, error)
  call did("MPI_Win_unlock", 0)
  call check
  call MPI_Win_lock_all(0, window, error)
  call did("MPI_Win_lock_all", 0)
  call MPI_Rget(got, 20, MPI_INTEGER, rank, place, 20, MPI_INTEGER, window, requests(1), error)
  call did("MPI_Rget", 80)
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE, error)
  call did("MPI_Wait", 0)
  call check
  call MPI_Fetch_and_op(data, got, MPI_INTEGER, rank, place, MPI_NO_OP, window, error)
  call did("MPI_Fetch_and_op", 4)
  call MPI_Win_flush(rank, window, error)
  call did("MPI_Win_flush", 0)
  call MPI_Win_unlock_all(window, error)
  call did("MPI_Win_unlock_all", 0)
  call MPI_Win_free(window, error)
  call did("MPI_Win_free", 0)
  call MPI_Comm_split(MPI_COMM_WORLD, 0, rank, alike, error)
  call did("MPI_Comm_split", 0)
  call MPI_Comm_free(alike, error)
  close(10)
  call MPI_Finalize(error)

contains

  subroutine check
    if (any(got /= [(100 * other + i, i = 1, 20)])) error stop "wrong data"
    got = 0
  end subroutine

  subroutine did(name, bytes)
    character(len=*), intent(in) :: name
    integer, intent(in) :: bytes
    write(10, "(a, 1x, i0, 1x, i0, 1x, i0)") name, -1, bytes, 0
  end subroutine
end program
