# shellcheck shell=bash
# The Debian packages that each command needs, and their installation.

# Enough for the Python package with its modules in C.
python_packages=(build-essential libdeflate-dev python3 python3-dev python3-venv)
# build/ and .venv/ with everything that a user runs. Without the MPI, HDF5 or OTF2, the programs that need it are left out.
tool_packages=("${python_packages[@]}" cmake libhdf5-openmpi-dev libopen-trace-format2-dev libopenmpi-dev openmpi-bin pkgconf)
# The second half of the demonstration.
demo_packages=(fio)
test_packages=(automake btrfs-progs chromium clang fio fish gfortran git hdf5-tools libclang-rt-dev libhdf5-dev
    libhdf5-mpich-dev libmpich-dev libnetcdf-dev libnetcdf-mpi-dev libnetcdff-dev libpnetcdf-dev lmod meson mpich munge musl-tools
    ninja-build otf2-tools postgresql python3-mpi4py slurm-client slurmctld slurmd sqlite3 strace valgrind zsh)
long_packages=(firefox-esr nginx-light node-configurable-http-proxy nodejs redis-server)
real_packages=(glusterfs-server iproute2 util-linux xfsprogs)
# `./dev lint --quick`, and what the whole of it needs more.
quick_lint_packages=(clang-format git shellcheck)
lint_packages=(clang-tidy cppcheck)

# Extras of setup.cfg for all tests.
test_extras=(browser dask dask-jobs darshan docs filters mcp notebook otf2 pandas parquet postgresql)
all_test_extras=$(IFS=, && echo "test,${test_extras[*]}")

# Packages that a command needs and this user cannot install.
lacking=()

ask_for_packages() {
    ((${#lacking[@]})) || return 0
    echo "dev: only root can install what is missing; ask for this, then run ./dev again:" >&2
    echo "    apt-get install --no-install-recommends ${lacking[*]}" >&2
}

# missing_packages PACKAGE...: prints those that are not installed.
missing_packages() {
    local name status
    local -A there=()
    while read -r name status; do
        [[ $status == installed ]] && there[$name]=1
    done < <(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "$@" 2>/dev/null)
    for name in "$@"; do
        [[ ${there[$name]-} ]] || echo "$name"
    done
}

may_install() {
    ((EUID == 0)) && return
    command -v sudo >/dev/null && sudo -v
}

# want_packages PACKAGE...: installs by apt those that are missing. Where this user may not, they go into `lacking`.
want_packages() {
    local missing
    if ! command -v dpkg-query >/dev/null; then
        say "this is not a Debian system: install what these packages hold by other means: $*"
        return
    fi
    mapfile -t missing < <(missing_packages "$@")
    ((${#missing[@]})) || return 0
    if ! may_install; then
        mapfile -t lacking < <(printf '%s\n' "${lacking[@]}" "${missing[@]}" | sed '/^$/d' | sort -u)
        return
    fi
    say "installing ${missing[*]}"
    # A second try helps where another user of apt was at work, and where the first one was interrupted.
    apt_install "${missing[@]}" || apt_install "${missing[@]}" || fail "apt-get could not install ${missing[*]}" \
        "($(reason apt-install '^E: '))$(network_hint apt-update); all of its output is in ${log#"$top"/}/apt-install.log"
}

# need_packages PACKAGE...: the same, and without them there is no going on.
need_packages() {
    want_packages "$@"
    ((${#lacking[@]} == 0)) || fail "packages are missing: ${lacking[*]}"
}

apt_install() {
    local quiet=(env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300)
    # What an interrupted installation left half done is completed first.
    [[ -z $(dpkg --audit 2>/dev/null) ]] || attempt dpkg-configure as_root env DEBIAN_FRONTEND=noninteractive dpkg --configure -a || true
    attempt apt-update as_root "${quiet[@]}" update || true
    local status=0 forbids=/usr/sbin/policy-rc.d made=
    # The tests start the servers that they need: apt starts none.
    if [[ ! -e $forbids ]]; then
        made=1
        printf '#!/bin/sh\nexit 101\n' | as_root tee "$forbids" >/dev/null
        as_root chmod 755 "$forbids"
    fi
    attempt apt-install as_root "${quiet[@]}" --fix-broken --no-install-recommends install "$@" || status=$?
    [[ ! $made ]] || as_root rm -f "$forbids"
    return "$status"
}

# network_hint LOG: part of a sentence, where a log says that no server was reached.
network_hint() {
    local signs='Temporary failure|Could not (resolve|connect)|Connection (failed|refused|timed out)|Network is unreachable|NewConnectionError|Cannot connect to proxy|from versions: none'
    grep -qE "$signs" "$log/$1.log" 2>/dev/null && echo ", perhaps because there is no network"
    return 0
}
