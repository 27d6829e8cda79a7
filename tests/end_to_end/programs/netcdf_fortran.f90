! Writes and reads a file by NetCDF's interface for Fortran 77 or, with argument 90, by its module. Prints what it did:
! call, requested, moved, errno. netcdf_fortran 77|90 FILE
program netcdf_fortran
    use netcdf, only: nf90_create, nf90_open, nf90_close, nf90_def_dim, nf90_def_var, nf90_enddef, nf90_put_att, &
        nf90_get_att, nf90_put_var, nf90_get_var, nf90_sync, nf90_clobber, nf90_nowrite, nf90_double, nf90_char
    implicit none
    include 'netcdf.inc'
    integer, parameter :: rows = 4, columns = 6
    integer :: file, dimensions(2), variable, words, number, i
    double precision :: field(columns, rows), back(columns, rows)
    real :: some(2, 2)
    character(len=256) :: kind, path
    call get_command_argument(1, kind)
    call get_command_argument(2, path)
    field = reshape([(dble(i), i = 1, rows*columns)], [columns, rows])
    some = 7
    if (kind == '77') then
        call did('nc_create', 0, nf_create(trim(path), NF_CLOBBER, file))
        call did('nc_def_dim', 0, nf_def_dim(file, 'column', columns, dimensions(1)))
        call did('nc_def_dim', 0, nf_def_dim(file, 'row', rows, dimensions(2)))
        call did('nc_def_var', 0, nf_def_var(file, 'field', NF_DOUBLE, 2, dimensions, variable))
        call did('nc_def_var', 0, nf_def_var(file, 'words', NF_CHAR, 1, dimensions, words))
        call did('nc_put_att', 0, nf_put_att_text(file, variable, 'units', 5, 'metre'))
        call did('nc_put_att', 0, nf_put_att_int(file, variable, 'number', NF_INT, 1, [42]))
        call did('nc_enddef', 0, nf_enddef(file))
        call did('nc_put_var', 8*rows*columns, nf_put_var_double(file, variable, field))
        call did('nc_put_var1', 8, nf_put_var1_real(file, variable, [1, 1], [1.]))
        call did('nc_put_vara', 8*2*columns, nf_put_vara_double(file, variable, [1, 1], [columns, 2], field))
        call did('nc_put_vars', 8*4, nf_put_vars_real(file, variable, [1, 1], [2, 2], [2, 2], some))
        call did('nc_put_varm', 8*4, nf_put_varm_real(file, variable, [1, 1], [2, 2], [2, 2], [1, 2], some))
        call did('nc_put_vara', 3, nf_put_vara_text(file, words, [1], [3], 'abc'))
        call did('nc_sync', 0, nf_sync(file))
        call did('nc_close', 0, nf_close(file))
        call did('nc_open', 0, nf_open(trim(path), NF_NOWRITE, file))
        call did('nc_get_vara', 8*columns, nf_get_vara_double(file, variable, [1, 2], [columns, 1], back))
        call did('nc_get_var', 8*rows*columns, nf_get_var_double(file, variable, back))
        call did('nc_get_att', 0, nf_get_att_int(file, variable, 'number', number))
        call did('nc_close', 0, nf_close(file))
    else
        call did('nc_create', 0, nf90_create(trim(path), nf90_clobber, file))
        call did('nc_def_dim', 0, nf90_def_dim(file, 'column', columns, dimensions(1)))
        call did('nc_def_dim', 0, nf90_def_dim(file, 'row', rows, dimensions(2)))
        call did('nc_def_var', 0, nf90_def_var(file, 'field', nf90_double, dimensions, variable))
        call did('nc_def_var', 0, nf90_def_var(file, 'words', nf90_char, dimensions(1:1), words))
        call did('nc_put_att', 0, nf90_put_att(file, variable, 'units', 'metre'))
        call did('nc_put_att', 0, nf90_put_att(file, variable, 'number', 42))
        call did('nc_enddef', 0, nf90_enddef(file))
        call did('nc_put_vara', 8*rows*columns, nf90_put_var(file, variable, field))
        call did('nc_put_var1', 8, nf90_put_var(file, variable, 1., [1, 1]))
        call did('nc_put_vara', 8*2*columns, nf90_put_var(file, variable, field(:, 1:2), [1, 1]))
        call did('nc_put_vara', 8*2*columns, nf90_put_var(file, variable, field, [1, 1], [columns, 2]))
        call did('nc_put_vars', 8*4, nf90_put_var(file, variable, some, stride=[2, 2]))
        call did('nc_put_varm', 8*4, nf90_put_var(file, variable, some, count=[2, 2], map=[1, 2]))
        call did('nc_put_vars', 3, nf90_put_var(file, words, 'abc'))
        call did('nc_sync', 0, nf90_sync(file))
        call did('nc_close', 0, nf90_close(file))
        call did('nc_open', 0, nf90_open(trim(path), nf90_nowrite, file))
        call did('nc_get_vara', 8*columns, nf90_get_var(file, variable, back, [1, 2], [columns, 1]))
        call did('nc_get_vara', 8*rows*columns, nf90_get_var(file, variable, back))
        call did('nc_get_att', 0, nf90_get_att(file, variable, 'number', number))
        call did('nc_close', 0, nf90_close(file))
    end if
    if (any(back(:, 4) /= field(:, 4))) error stop 'wrong data'
contains
    subroutine did(call, bytes, status)
        character(len=*), intent(in) :: call
        integer, intent(in) :: bytes, status
        if (status /= 0) then
            print '(a, i0)', 'wrong status of '//call//' ', status
            error stop
        end if
        print '(a, 1x, i0, 1x, i0, a)', call, bytes, bytes, ' 0 -1'
    end subroutine
end program
