! Names a region and an event as programs for IPM do, with a NUL behind the name and without.
program regions
  implicit none
  include 'mpif.h'
  external mpi_pcontrol
  integer :: error, unit
  call mpi_init(error)
  call mpi_pcontrol(1, 'solve'//char(0))
  call mpi_barrier(mpi_comm_world, error)
  call mpi_pcontrol(0, 'step')
  call mpi_pcontrol(-1, 'solve'//char(0))
  call pmpi_barrier(mpi_comm_world, error)
  call mpi_finalize(error)
end program
