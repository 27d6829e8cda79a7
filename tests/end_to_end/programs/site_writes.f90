! Writes by statements of the language, whose library calls the system: the sites are those of the program.
module restart
contains
  subroutine write_restart(unit)
    integer, intent(in) :: unit
    integer :: i
    do i = 1, 3
      write (unit) i
      flush (unit) ! site flush: 3 write
    end do
  end subroutine
end module

program main
  use restart
  character(len=4000) :: folder
  call get_command_argument(1, folder)
  open (unit=10, file=trim(folder)//"/data", form="unformatted", access="stream") ! site open: 1 open, 1 fstat
  call write_restart(10)
  close (10) ! site close: 1 close
end program
