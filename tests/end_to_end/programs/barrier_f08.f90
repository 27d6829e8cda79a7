! Barriers of both names of the module mpi_f08, with the argument that may be left out and without.
program barriers
  use mpi_f08
  implicit none
  integer :: error
  call mpi_init()
  call mpi_barrier(mpi_comm_world)
  call pmpi_barrier(mpi_comm_world)
  call pmpi_barrier(mpi_comm_world, error)
  call mpi_finalize()
  if (error /= 0) stop 1
end program
