! Each task writes its own file.
program own_files
  use mpi
  implicit none
  integer :: rank, error
  character(len=32) :: name
  call mpi_init(error)
  call mpi_comm_rank(mpi_comm_world, rank, error)
  write (name, '(a,i0)') 'fortran.', rank
  open (unit=10, file=name, form='unformatted', access='stream')
  write (10) rank
  close (10)
  call mpi_finalize(error)
end program
