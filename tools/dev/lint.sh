# shellcheck shell=bash
# ./dev lint: what a machine can check without running the program.

# What ruff checks.
python_sources=(ensembles viz tests benchmarks calibration libtrace testbed tools setup.py)

# The checks in their order; the first take two minutes together, the others need what tests need.
quick_checks=(ruff format mypy shellcheck clang-format codespell phrases)
whole_checks=(cppcheck clang-tidy)

lint() {
    local checks=() name failed=()
    case ${1-} in
    "") checks=("${quick_checks[@]}" "${whole_checks[@]}") ;;
    --quick) checks=("${quick_checks[@]}") ;;
    --prose-figures)
        cd "$top"
        exec "$python" tools/dev/prose.py --figures
        ;;
    *)
        for name in "$@"; do
            [[ " ${quick_checks[*]} ${whole_checks[*]} " == *" $name "* ]] ||
                fail "lint knows no check $name; choose from ${quick_checks[*]} ${whole_checks[*]}"
        done
        checks=("$@")
        ;;
    esac
    if [[ " ${checks[*]} " == *" cppcheck "* || " ${checks[*]} " == *" clang-tidy "* ]]; then
        set_up_tests "$all_test_extras,lint" "${test_packages[@]}" "${quick_lint_packages[@]}" "${lint_packages[@]}"
    else
        set_up_quick_lint
    fi
    cd "$top"
    for name in "${checks[@]}"; do
        say "$name"
        "check_$name" || failed+=("$name")
    done
    ((${#failed[@]} == 0)) || fail "lint: these checks failed: ${failed[*]}"
    say "lint: every check passed"
}

set_up_quick_lint() { in_turn make_python "$all_test_extras,lint" "${quick_lint_packages[@]}"; }

check_ruff() { ruff check "${python_sources[@]}"; }

check_format() { ruff format --check --quiet "${python_sources[@]}"; }

check_shellcheck() {
    shellcheck -x dev tools/dev/bare_root.sh .ci/run libtrace/tools/ensio-cc docs/examples/ensio-dask.slurm docs/examples/record.slurm
}

check_phrases() { python tools/dev/prose.py; }

check_mypy() {
    # viz is installed as ensembles.viz: links show mypy the package as it is installed.
    rm -rf "$build/types"
    mkdir -p "$build/types/ensembles"
    ln -s "$top"/ensembles/* "$top/viz" "$build/types/ensembles"
    (cd "$build/types" && mypy --config-file "$top/pyproject.toml" --cache-dir "$build/mypy" -p ensembles) &&
        mypy --cache-dir "$build/mypy" tools/dev
}

check_clang-format() {
    git ls-files -z 'ensembles/*.[ch]' 'libtrace/*.[ch]' 'testbed/*.[ch]' 'benchmarks/*.[ch]' 'tests/*.[ch]' ':!tests/fuzz/corpus' |
        xargs -0 clang-format --dry-run -Werror
}

check_codespell() {
    git ls-files -z -- ':!:tests/fuzz/corpus' ':!:tests/corpus/runs' ':!:tests/corpus/frozen' ':!:tests/end_to_end/archives' ':!:docs/man' |
        xargs -0 codespell --ignore-words tools/dev/words.txt
}

# CMake knows how the recorder is compiled; what ensio-cc compiles in one go with its linking, it does not, nor Python's modules,
# nor what clang makes in its own build folder.
c_built() { git ls-files 'libtrace/*.c' 'tests/c/*.c' 'testbed/pfsmodel/*.c' 'testbed/shim/*.c' 'testbed/simulate/*.c'; }
c_linked() { git ls-files 'testbed/replay/*.c' 'testbed/*_check.c' 'benchmarks/*.c'; }
c_modules() { git ls-files 'ensembles/*.c' 'tests/fuzz/*.c'; }

check_cppcheck() {
    local files
    mapfile -t files < <(c_built && c_linked && c_modules)
    cppcheck --quiet --std=c11 --enable=warning,performance,portability --inline-suppr \
        --suppress=ctunullpointer --suppress=arrayIndexOutOfBoundsCond --suppress=identicalInnerCondition --error-exitcode=1 \
        -I ensembles -I libtrace -I libtrace/include -I testbed -I testbed/pfsmodel -I testbed/shim "${files[@]}"
}

check_clang-tidy() {
    local status=0 folder built linked modules mpi_includes=() netcdf=() python_include
    mapfile -t built < <(c_built)
    mapfile -t linked < <(c_linked)
    mapfile -t modules < <(c_modules)
    python_include=$(python -c 'import sysconfig; print(sysconfig.get_path("include"))')
    for folder in $(mpicc --showme:incdirs) $(pkg-config --cflags-only-I hdf5-openmpi); do
        mpi_includes+=(-isystem "${folder#-I}")
    done
    for folder in /usr/lib/*/netcdf/mpi/include; do
        if [[ -e $folder/netcdf_par.h && -e /usr/include/pnetcdf.h ]]; then
            netcdf=(-DENSIO_PARALLEL_NETCDF -DENSIO_PNETCDF -isystem "$folder")
        fi
    done
    clang-tidy --quiet --extra-arg=-Wno-ignored-optimization-argument -p "$build" "${built[@]}" || status=1
    clang-tidy --quiet "${linked[@]}" -- -std=gnu11 -DENSIO_PARALLEL_HDF5 "${netcdf[@]}" -I libtrace/include "${mpi_includes[@]}" || status=1
    clang-tidy --quiet "${modules[@]}" -- -std=gnu11 -D_GNU_SOURCE -I ensembles -I libtrace -I libtrace/include \
        -isystem "$python_include" || status=1
    return "$status"
}
