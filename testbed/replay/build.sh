#!/bin/sh
# build.sh MPICC PROGRAM [OPTION...]: links ensio-replay as a user's program would be, by the ensio-cc on PATH.
# build.sh MPICC: prints the options for its parallel HDF5, parallel NetCDF and PnetCDF; fails without one of a layer in NEEDED.
set -eu
here=$(dirname "$0")
mpicc=$1
shift
if [ $# -gt 0 ]; then
    program=$1
    shift
    # shellcheck disable=SC2086
    ENSIO_CC_QUIET=1 exec ensio-cc "$mpicc" -std=c11 ${CFLAGS:--O2 -s} -Wall -Wextra -Wpedantic \
        -I "$(dirname "$(command -v ensio-cc)")/../include" "$here"/*.c -o "$program" "$@"
fi

# The compiler drivers of these libraries are not used: they select an MPI, and static libraries, whose calls a preloaded
# recorder does not see. In distributions, pkg-config knows which library belongs to which MPI. If modules or a compiler
# driver provide the only one, no option or -l suffices.
program=$(mktemp)
trap 'rm -f "$program"' EXIT

# find LAYER DEFINITION TEXT OPTIONS...: prints the first options with which the layer is linked, and needs one MPI: with a
# library over another MPI it is linked too, and fails when it runs.
find() {
    layer=$1 definition=$2 text=$3
    shift 3
    for options in "$@"; do
        # shellcheck disable=SC2086
        if [ "$options" ] && "$mpicc" -shared -fPIC -Werror=implicit-function-declaration "$definition" \
            "$here/calls_$layer.c" -o "$program" $options 2>/dev/null &&
            [ "$(ldd "$program" | grep -o 'lib\(mpi\|mpich\)\.so[.0-9]*' | sort -u | wc -l)" -le 1 ]; then
            printf '%s %s ' "$definition" "$options"
            return
        fi
    done
    echo "ensio-replay is built without its layer $layer: $mpicc finds no $text-dev)" >&2
    case " ${NEEDED:-} " in *" $layer "*) exit 1 ;; esac
}
packages() { pkg-config --cflags --libs "$1" 2>/dev/null || true; }

mpi=mpich
! "$mpicc" -E -dM -include mpi.h -x c /dev/null 2>/dev/null | grep -q 'define OPEN_MPI ' || mpi=openmpi
find hdf5 -DENSIO_PARALLEL_HDF5 "parallel HDF5 (Debian: libhdf5-$mpi" "$(packages hdf5-$mpi)" "$(packages hdf5)" -lhdf5
# Debian keeps the headers of its parallel NetCDF where its pkg-config file does not say.
headers=$(printf ' -I%s' /usr/lib/*/netcdf/mpi/include)
find netcdf -DENSIO_PARALLEL_NETCDF "parallel NetCDF (Debian: libnetcdf-mpi" "$(packages netcdf-mpi)$headers" \
    "$(packages netcdf)" -lnetcdf
find pnetcdf -DENSIO_PNETCDF "PnetCDF (Debian: libpnetcdf" "$(packages pnetcdf)" -lpnetcdf
