! Messages with large counts (MPI_COUNT_KIND) and persistent collective calls of MPI 4 from the module mpi_f08, by two
! tasks. Each task writes a log as mpimsg_fortran.F90 does.
program large_fortran
  use mpi_f08
  implicit none
  integer(MPI_COUNT_KIND), parameter :: count = 10, many = 3000000000_MPI_COUNT_KIND
  type(MPI_Request) :: request, begun(2)
  integer, asynchronous :: data(10), got(10), sums(10)
  integer :: rank, other, i
  character(len=1000) :: folder

  call get_command_argument(1, folder)
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  open(unit=10, file=trim(folder)//"/log."//char(48 + rank))
  other = 1 - rank
  data = [(100 * rank + i, i = 1, 10)]

  ! More than an integer has room for; without a peer, no message is sent.
  call MPI_Send(data, many, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD)
  call did("MPI_Send", 4 * many)
  call MPI_Irecv(got, count, MPI_INTEGER, other, 1, MPI_COMM_WORLD, request)
  call did("MPI_Irecv", 4 * count)
  call MPI_Send(data, count, MPI_INTEGER, other, 1, MPI_COMM_WORLD)
  call did("MPI_Send", 4 * count)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  call did("MPI_Wait", 0_MPI_COUNT_KIND)
  call check(got, [(100 * other + i, i = 1, 10)])
  call MPI_Sendrecv(data, count, MPI_INTEGER, other, 2, got, count, MPI_INTEGER, other, 2, MPI_COMM_WORLD, &
                    MPI_STATUS_IGNORE)
  call did("MPI_Sendrecv", 8 * count)
  call check(got, [(100 * other + i, i = 1, 10)])
  call MPI_Allreduce(data, sums, count, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  call did("MPI_Allreduce", 4 * count)
  call check(sums, [(100 + 2 * i, i = 1, 10)])
  call MPI_Ibcast(got, count, MPI_INTEGER, 0, MPI_COMM_WORLD, request)
  call did("MPI_Ibcast", 4 * count)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  call did("MPI_Wait", 0_MPI_COUNT_KIND)

  ! What prepares a transfer is not recorded, whether of messages or collective; each start is, and each wait.
  call MPI_Allreduce_init(data, sums, 10, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, begun(1))
  call MPI_Bcast_init(got, count, MPI_INTEGER, 1, MPI_COMM_WORLD, MPI_INFO_NULL, begun(2))
  do i = 1, 2
    sums = 0
    call MPI_Start(begun(1))
    call did("MPI_Start", 0_MPI_COUNT_KIND)
    call MPI_Wait(begun(1), MPI_STATUS_IGNORE)
    call did("MPI_Wait", 0_MPI_COUNT_KIND)
    if (any(sums /= 100 + 2 * [1, 2, 3, 4, 5, 6, 7, 8, 9, 10])) call MPI_Abort(MPI_COMM_WORLD, 1)
  end do
  got = data
  call MPI_Startall(2, begun)
  call did("MPI_Startall", 0_MPI_COUNT_KIND)
  call MPI_Waitall(2, begun, MPI_STATUSES_IGNORE)
  call did("MPI_Waitall", 0_MPI_COUNT_KIND)
  call check(got, [(100 + i, i = 1, 10)])
  call MPI_Request_free(begun(1))
  call MPI_Request_free(begun(2))

  call did("MPI_Init", 0_MPI_COUNT_KIND)
  call did("MPI_Finalize", 0_MPI_COUNT_KIND)
  close(10)
  call MPI_Finalize()

contains

  subroutine did(name, bytes)
    character(len=*), intent(in) :: name
    integer(MPI_COUNT_KIND), intent(in) :: bytes
    write(10, "(a, a, i0, a)") name, " -1 ", bytes, " 0"
  end subroutine

  subroutine check(values, expected)
    integer, intent(in) :: values(:), expected(:)
    if (any(values /= expected)) call MPI_Abort(MPI_COMM_WORLD, 1)
  end subroutine
end program
