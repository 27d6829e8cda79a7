! Writes four records of an unformatted stream; phases, and a region around each.
program regions
  use ensio
  implicit none
  integer :: i, unit
  call ensio_phase("setup")
  open(newunit=unit, file="regions.f90.out", access="stream", form="unformatted", status="replace")
  call ensio_phase("work")
  do i = 1, 4
    call ensio_region_begin("record")
    write(unit) i
    flush(unit)
    call ensio_region_end("record  ")
  end do
  close(unit)
  print *, "done"
end program regions
