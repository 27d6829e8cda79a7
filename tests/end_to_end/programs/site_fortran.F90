! The I/O of a Fortran program in optimised subroutines: statements of the language, MPI-IO (module mpi, or mpi_f08 if F08 is
! defined) and HDF5. A mark says how many calls a line leads to, in each layer; the calls of MPI-IO and HDF5 in all layers
! below have the line, too.
module fields
  use hdf5
#ifdef F08
  use mpi_f08
#else
  use mpi
#endif
  implicit none
  integer :: error
  real(8) :: field(1000)
contains

  subroutine text_output(folder)
    character(len=*), intent(in) :: folder
    integer :: unit, step
    open (newunit=unit, file=folder//"/log.txt")
    do step = 1, 4
      write (unit, '(a,i0)') "step ", step
      flush (unit) ! posix: 4 write
    end do
    close (unit)
  end subroutine

  subroutine records(folder)
    character(len=*), intent(in) :: folder
    integer :: unit, record
    open (newunit=unit, file=folder//"/records", access="direct", recl=8000)
    do record = 1, 3
      write (unit, rec=record) field
      flush (unit) ! posix: 3 write
    end do
    do record = 1, 3
      read (unit, rec=record) field ! posix: 1 read
    end do
    close (unit)
  end subroutine

  subroutine parallel_output(folder)
    character(len=*), intent(in) :: folder
#ifdef F08
    type(MPI_File) :: file
#else
    integer :: file
#endif
    integer(MPI_OFFSET_KIND) :: at
    integer :: step
    call MPI_File_open(MPI_COMM_SELF, folder//"/mpi", MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, file, error) ! mpiio: 1 MPI_File_open
    do step = 1, 5
      at = 8000*(step - 1)
      call MPI_File_write_at(file, at, field, 1000, MPI_DOUBLE_PRECISION, MPI_STATUS_IGNORE, error) ! mpiio: 5 MPI_File_write_at
    end do
    at = 0
    call MPI_File_read_at_all(file, at, field, 1000, MPI_DOUBLE_PRECISION, MPI_STATUS_IGNORE, error) ! mpiio: 1 MPI_File_read_at_all
    call MPI_File_close(file, error) ! mpiio: 1 MPI_File_close
  end subroutine

  subroutine dataset(file, name)
    integer(HID_T), intent(in) :: file
    character(len=*), intent(in) :: name
    integer(HID_T) :: space, set
    integer(HSIZE_T) :: lengths(1)
    lengths = 1000
    call h5screate_simple_f(1, lengths, space, error)
    call h5dcreate_f(file, name, H5T_NATIVE_DOUBLE, space, set, error) ! optional arguments are omitted
    call h5dwrite_f(set, H5T_NATIVE_DOUBLE, field, lengths, error) ! hdf5: 2 H5Dwrite
    call h5dclose_f(set, error) ! hdf5: 2 H5Dclose
    call h5sclose_f(space, error)
  end subroutine

  subroutine hdf5_output(folder)
    character(len=*), intent(in) :: folder
    integer(HID_T) :: file
    call h5open_f(error)
    call h5fcreate_f(folder//"/fields.h5", H5F_ACC_TRUNC_F, file, error) ! hdf5: 1 H5Fcreate
    call dataset(file, "density")
    call dataset(file, "pressure")
    call h5fclose_f(file, error) ! hdf5: 1 H5Fclose
    call h5close_f(error)
  end subroutine
end module

program site_fortran
  use fields
  implicit none
  character(len=4000) :: folder
  call get_command_argument(1, folder)
  call MPI_Init(error)
  field = 1
  call text_output(trim(folder))
  call records(trim(folder))
  call parallel_output(trim(folder))
  call hdf5_output(trim(folder))
  call MPI_Finalize(error)
end program
