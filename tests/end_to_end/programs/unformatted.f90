! Writes and reads ten records of 8,192 bytes by the statements of the language.
program unformatted
  implicit none
  integer :: i, u
  real(8) :: block(1024)
  character(len=512) :: path
  call get_command_argument(1, path)
  block = 1.0d0
  open(newunit=u, file=trim(path), form='unformatted', access='stream', status='replace', action='readwrite')
  do i = 1, 10
     write(u) block
  end do
  rewind(u)
  do i = 1, 10
     read(u) block
  end do
  close(u)
end program
