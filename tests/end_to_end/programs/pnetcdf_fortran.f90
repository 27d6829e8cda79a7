! Writes and reads a file by PnetCDF's interface for Fortran 77 or, with argument 90, by its module, on any number of
! tasks. Task 0 prints what it did: call, requested, moved, errno. pnetcdf_fortran 77|90 FILE
program pnetcdf_fortran
    use mpi
    use pnetcdf
    implicit none
    integer, parameter :: rows = 4, columns = 6, offset = MPI_OFFSET_KIND
    integer :: file, dimensions(2), variable, rank, tasks, error, requests(2), states(2)
    integer(offset) :: first(2), whole(2), half(2), firsts(2, 2), counts(2, 2)
    double precision :: field(columns, rows), back(columns, rows)
    character(len=256) :: kind, path
    call MPI_Init(error)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
    call MPI_Comm_size(MPI_COMM_WORLD, tasks, error)
    call get_command_argument(1, kind)
    call get_command_argument(2, path)
    field = rank
    first = [1_offset, int(rank*rows + 1, offset)]
    whole = [int(columns, offset), int(rows, offset)]
    half = [int(columns, offset), 2_offset]
    firsts = spread(first, 2, 2)
    counts = reshape([2_offset, 1_offset, 3_offset, 1_offset], [2, 2])
    if (kind == '77') then
        call did('ncmpi_create', 0, nfmpi_create(MPI_COMM_WORLD, trim(path), NF_CLOBBER, MPI_INFO_NULL, file))
        call did('ncmpi_def_dim', 0, nfmpi_def_dim(file, 'column', whole(1), dimensions(1)))
        call did('ncmpi_def_dim', 0, nfmpi_def_dim(file, 'row', whole(2)*tasks, dimensions(2)))
        call did('ncmpi_def_var', 0, nfmpi_def_var(file, 'field', NF_DOUBLE, 2, dimensions, variable))
        call did('ncmpi_put_att', 0, nfmpi_put_att_text(file, variable, 'units', 5_offset, 'metre'))
        call did('ncmpi_enddef', 0, nfmpi_enddef(file))
        call did('ncmpi_put_vara_all', 8*rows*columns, nfmpi_put_vara_double_all(file, variable, first, whole, field))
        call did('ncmpi_put_varn_all', 8*5, nfmpi_put_varn_double_all(file, variable, 2, firsts, counts, field))
        call did('ncmpi_iput_vara', 8*2*columns, &
            nfmpi_iput_vara_double(file, variable, first, half, field, requests(1)))
        call did('ncmpi_iput_vara', 8*rows*columns, &
            nfmpi_iput_vara_double(file, variable, first, whole, field, requests(2)))
        call did('ncmpi_wait_all', 0, nfmpi_wait_all(file, 2, requests, states))
        call did('ncmpi_get_vara_all', 8*rows*columns, nfmpi_get_vara_double_all(file, variable, first, whole, back))
        call did('ncmpi_close', 0, nfmpi_close(file))
    else
        call did('ncmpi_create', 0, nf90mpi_create(MPI_COMM_WORLD, trim(path), NF90_CLOBBER, MPI_INFO_NULL, file))
        call did('ncmpi_def_dim', 0, nf90mpi_def_dim(file, 'column', whole(1), dimensions(1)))
        call did('ncmpi_def_dim', 0, nf90mpi_def_dim(file, 'row', whole(2)*tasks, dimensions(2)))
        call did('ncmpi_def_var', 0, nf90mpi_def_var(file, 'field', NF90_DOUBLE, dimensions, variable))
        call did('ncmpi_put_att', 0, nf90mpi_put_att(file, variable, 'units', 'metre'))
        call did('ncmpi_enddef', 0, nf90mpi_enddef(file))
        call did('ncmpi_put_vara_all', 8*rows*columns, nf90mpi_put_var_all(file, variable, field, first))
        call did('ncmpi_put_vara_all', 8*2*columns, nf90mpi_put_var_all(file, variable, field, first, half))
        call did('ncmpi_iput_vara', 8*2*columns, nf90mpi_iput_var(file, variable, field, requests(1), first, half))
        call did('ncmpi_iput_vara', 8*rows*columns, nf90mpi_iput_var(file, variable, field, requests(2), first))
        call did('ncmpi_wait_all', 0, nf90mpi_wait_all(file, 2, requests, states))
        call did('ncmpi_get_vara_all', 8*rows*columns, nf90mpi_get_var_all(file, variable, back, first))
        call did('ncmpi_close', 0, nf90mpi_close(file))
    end if
    if (any(back /= field)) error stop 'wrong data'
    call MPI_Finalize(error)
contains
    subroutine did(call, bytes, status)
        character(len=*), intent(in) :: call
        integer, intent(in) :: bytes, status
        if (status /= 0) then
            print '(a, i0)', 'wrong status of '//call//' ', status
            error stop
        end if
        if (rank == 0) print '(a, 1x, i0, 1x, i0, a)', call, bytes, bytes, ' 0 -1'
    end subroutine
end program
