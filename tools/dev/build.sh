# shellcheck shell=bash
# Brings build/ and .venv/ up to date. Each step leaves a mark when it has succeeded, so that an interrupted one is done again.

# What build/ and .venv/ are made from, but for Python files, which are used where they lie.
sources=(CMakeLists.txt dev ensembles libtrace pyproject.toml setup.cfg setup.py testbed tools/dev)
sources=("${sources[@]/#/$top/}")
ready=$build/.ready

# Whether build/ and .venv/ are newer than their sources and the installed packages: without a look at what CMake thinks, which
# takes seconds.
is_ready() {
    local place=
    [[ -f $ready && -x $build/bin/ensio-cc && -x $venv/bin/ensio ]] && read -r place <"$ready" && [[ $place == "$top" ]] || return 1
    local packages=${DPKG_ADMINDIR:-/var/lib/dpkg}/status
    [[ -f $packages && $packages -nt $ready ]] && return 1
    [[ -z $(find "${sources[@]}" -type f -newer "$ready" ! -name '*.py' ! -name '*.pyc' ! -name '*.so' -print -quit) ]]
}

# All that CMake's findings depend on: the packages that are installed, the compilers, CMake's own files.
fingerprint() {
    {
        echo "$top" "${CC-}" "${CFLAGS-}" "${LDFLAGS-}" "$(readlink -f "$(command -v mpicc)")"
        "${CC:-cc}" --version
        cmake --version
        dpkg-query -W -f '${Package} ${Version} ${db:Status-Status}\n' "${tool_packages[@]}" "${test_packages[@]}" | sort
        cd "$top"
        find CMakeLists.txt benchmarks libtrace testbed tests/c tests/fuzz -name CMakeLists.txt -o -name '*.cmake' -o -name '*.in' |
            sort | xargs cat
    } 2>/dev/null | cksum
}

# configure NAME FOLDER OPTION...: by CMake and from nothing, unless that was done with the same packages, files and options.
configure() {
    local name=$1 folder=$2 print
    shift 2
    print="$(fingerprint) $*"
    if [[ -f $folder/Makefile && ! -e $folder/.building && -f $folder/.configured && $(<"$folder/.configured") == "$print" ]]; then
        return
    fi
    say "configuring ${folder#"$top"/}/"
    rm -rf "$folder/.configured" "$folder/CMakeCache.txt" "$folder/CMakeFiles"
    logged "$name" cmake -S "$top" -B "$folder" -G "Unix Makefiles" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DENSIO_TESTBED=ON -DENSIO_TESTS=ON "$@"
    echo "$print" >"$folder/.configured"
}

# make_targets NAME FOLDER TARGET...: builds them. A compiler that is killed may leave half a file that make takes for a new one:
# what a build made that did not come to its end is made again.
make_targets() {
    local name=$1 folder=$2 mark=$2/.building status=0
    shift 2
    if [[ -e $mark ]]; then
        find "$folder" -type f -newer "$mark" \( -perm -u+x -o -name '*.[ao]' -o -path "$folder/share/*" \) -delete
    fi
    : >"$mark"
    attempt "$name" cmake --build "$folder" --parallel "$(nproc)" --target "$@" || status=$?
    rm "$mark"
    ((status == 0)) || give_up "$name"
}

# build_c TARGET...: the recorder and its tools.
build_c() {
    configure configure "$build"
    say "building into build/"
    make_targets build "$build" "$@"
}

# The fuzzers of C code that reads foreign bytes: by clang, in their own build folder.
build_fuzzers() {
    configure configure-fuzz "$build/fuzz" -DCMAKE_C_COMPILER=clang -DENSIO_FUZZ=ON
    make_targets build-fuzz "$build/fuzz" fuzzers
}

# build_sanitized NAME SANITIZERS: the recorder for relinked programs, in its own build folder.
build_sanitized() {
    local folder=$build/$1 flags="-fsanitize=$2 -fno-omit-frame-pointer -fno-sanitize-recover=all"
    configure "configure-$1" "$folder" "-DCMAKE_C_FLAGS=$flags"
    make_targets "build-$1" "$folder" ensio-driver
}

# install_python EXTRAS: the package with its requirements, again when what it is made from has changed.
install_python() {
    local extras=$1 made state
    made="$top $("$python" --version)"
    state=$(
        cd "$top"
        echo "$made"
        cat setup.cfg setup.py pyproject.toml libtrace/include/ensio/*.h
        find ensembles -name '*.[ch]' | sort | xargs cat
        # The module that is left out where libdeflate is missing is tried again when it is there.
        ls /usr/include/libdeflate.h 2>/dev/null || true
    )
    state=$(cksum <<<"$state")
    if [[ ! -f $venv/ensio-made || $(<"$venv/ensio-made") != "$made" ]]; then
        say "making .venv/"
        logged venv "$python" -m venv --clear "$venv"
        echo "$made" >"$venv/ensio-made"
    fi
    # What was installed before stays: parts of the tests need different extras.
    local installed=
    [[ ! -f $venv/ensio-state ]] || installed=$(cut -d ' ' -f 3- "$venv/ensio-state")
    extras=$(tr ',' '\n' <<<"$installed,$extras" | sed '/^$/d' | sort -u | paste -sd ,)
    if [[ -f $venv/ensio-state && $(<"$venv/ensio-state") == "$state $extras" ]]; then
        return 0
    fi
    say "installing the Python package and what it needs into .venv/"
    # While pip is at work, nothing is known; what it refuses before it installs anything leaves all as it was.
    [[ ! -f $venv/ensio-state ]] || mv "$venv/ensio-state" "$venv/ensio-state.before"
    if ! attempt pip "$venv/bin/python" -m pip install --disable-pip-version-check --editable "$top${extras:+[$extras]}"; then
        if [[ -f $venv/ensio-state.before ]] && ! grep -q '^Installing collected packages' "$log/pip.log"; then
            mv "$venv/ensio-state.before" "$venv/ensio-state"
        fi
        local why
        why=$(reason pip '^ *error: ensio ')
        fail "pip could not install the Python package (${why:-$(reason pip '^ *ERROR: ')})$(network_hint pip);" \
            "all of its output is in ${log#"$top"/}/pip.log"
    fi
    if [[ ,$extras, == *,darshan,* ]] && ! can_read_darshan; then
        logged pip-darshan "$venv/bin/python" -m pip install --no-deps --upgrade --only-binary :all: --python-version 3.12 \
            --target "$(echo "$venv"/lib/python3.*/site-packages)" 'darshan>=3.4.6'
    fi
    echo "$state $extras" >"$venv/ensio-state"
    rm -f "$venv/ensio-state.before"
}

# The package darshan has no wheel for some Pythons, such as 3.13, and without one no library: that of another wheel serves all.
can_read_darshan() {
    "$venv/bin/python" -c 'from ensembles.readers.foreign.darshan.library import load; load()' 2>/dev/null
}

# compile_python: what pip leaves uncompiled in an editable installation. Else every process compiles it anew where
# PYTHONDONTWRITEBYTECODE is set, as in many containers, or where the user may not write here.
compile_python() {
    "$venv/bin/python" -m compileall -q "$top"/{ensembles,viz,testbed,calibration} >/dev/null || true
}

can_build_c() {
    command -v "${CC:-cc}" >/dev/null && command -v make >/dev/null && command -v cmake >/dev/null
}

can_install_python() {
    "$python" -c 'import ensurepip, venv' 2>/dev/null
}

# in_turn COMMAND...: one at a time in a working tree.
in_turn() {
    mkdir -p "$build"
    {
        flock --nonblock 9 || say "waiting for another ./dev that is at work in this tree"
        flock 9
        "$@"
    } 9>"$build/.lock"
    export PATH=$build/bin:$venv/bin:$PATH
}

# set_up_tools PACKAGE...: the tools for those who run them; where packages are lacking, as much as can be made without. The
# packages named are wanted later: they are asked for in one go with those that are lacking.
set_up_tools() { in_turn make_tools "$@"; }

make_tools() {
    want_packages "${tool_packages[@]}"
    ((${#lacking[@]} == 0)) || want_packages "$@"
    is_ready && return
    local started=$build/.ready.new
    echo "$top" >"$started"
    ((${#lacking[@]} == 0)) || say "packages are missing that only root can install; this goes on without them"
    can_build_c || say "build/ is left out: it needs a C compiler, make and CMake"
    can_install_python || say ".venv/ is left out: it needs Python with its module venv"
    ! can_build_c || build_c all
    ! can_install_python || install_python full
    ! can_install_python || compile_python
    ! can_build_c || ! can_install_python || mv "$started" "$ready"
}

# set_up_tests EXTRAS PACKAGE...: everything, for tests, benchmarks and the like. What is built is always checked.
set_up_tests() { in_turn make_tests "$@"; }

make_tests() {
    local extras=$1 started=$build/.ready.new
    shift
    need_packages "${tool_packages[@]}" "$@"
    echo "$top" >"$started"
    build_c all ensio-tests
    install_python "$extras"
    compile_python
    mv "$started" "$ready"
}
