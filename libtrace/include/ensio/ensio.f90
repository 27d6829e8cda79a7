! ensio.f90: names for the parts of a program's run, from Fortran. A module file serves only the compiler that made it, so
! this source is compiled with the program. ensio.h says what the three mean.
!
!     use ensio
!     call ensio_phase("solve")
!     call ensio_region_begin("write")
!     call ensio_region_end("write")
!
! Programs that are not linked by ensio-cc, which has the function below, are linked with libensio-regions.a.
module ensio
  use, intrinsic :: iso_c_binding, only: c_char, c_int, c_null_char
  implicit none
  private
  public :: ensio_phase, ensio_region_begin, ensio_region_end

  interface
    subroutine mark_from_fortran(what, name) bind(c, name="ensio_mark_from_fortran")
      import :: c_char, c_int
      integer(c_int), value :: what
      character(kind=c_char), intent(in) :: name(*)
    end subroutine mark_from_fortran
  end interface

contains

  subroutine ensio_phase(name)
    character(len=*), intent(in) :: name
    call mark_from_fortran(0_c_int, trim(name) // c_null_char)
  end subroutine ensio_phase

  subroutine ensio_region_begin(name)
    character(len=*), intent(in) :: name
    call mark_from_fortran(1_c_int, trim(name) // c_null_char)
  end subroutine ensio_region_begin

  subroutine ensio_region_end(name)
    character(len=*), intent(in) :: name
    call mark_from_fortran(2_c_int, trim(name) // c_null_char)
  end subroutine ensio_region_end

end module ensio
