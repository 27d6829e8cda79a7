# shellcheck shell=bash
# What tests need. A table says it for the parts that need less than everything.

# "python": Python and a C compiler; "tools": what build/ has too. More words are packages.
declare -A needs_of=(
    [tests/c]="tools"
    [tests/corpus]="python"
    [tests/python/cli]="tools"
    [tests/python/diagnosis]="python"
    [tests/python/foreign]="tools sqlite3 strace"
    [tests/python/jobfile]="tools"
    [tests/python/reading]="python hdf5-tools"
    [tests/python/scale]="python"
    [tests/python/statistics]="python"
    [tests/python/structure]="python"
    [tests/python/summaries]="python"
    [tests/python/testbed]="tools"
    [tests/python/viz]="tools chromium"
    [tests/end_to_end/test_dev.py]="tools git strace"
)

# needs ARGUMENT...: what the tests named by pytest's arguments need together; "all" where the table does not know.
needs() {
    local argument path entry found level=python packages=() paths=0 words
    for argument in "$@"; do
        path=${argument%%::*}
        path=${path#"$top"/}
        path=${path#./}
        path=${path%/}
        [[ $path != -* && -e $top/$path ]] || continue
        paths=1 found=
        for entry in "${!needs_of[@]}"; do
            [[ $path == "$entry" || $path == "$entry"/* ]] && found=${needs_of[$entry]}
        done
        if [[ ! $found ]]; then
            echo all
            return
        fi
        read -ra words <<<"$found"
        [[ ${words[0]} == python ]] || level=tools
        packages+=("${words[@]:1}")
    done
    if ((paths)); then
        echo "$level" "${packages[@]}"
    else
        echo all
    fi
}

# set_up_for ARGUMENT...: what these tests need, and no more.
set_up_for() {
    local level packages
    read -r level packages <<<"$(needs "$@")"
    # shellcheck disable=SC2086 # names of packages
    case $level in
    python) in_turn make_python "test,notebook" $packages ;;
    tools) set_up_tests "test,notebook" $packages ;;
    *) set_up_all_tests ;;
    esac
}

# make_python EXTRAS PACKAGE...: the Python package without what build/ has.
make_python() {
    need_packages "${python_packages[@]}" "${@:2}"
    install_python "$1"
}

set_up_all_tests() {
    set_up_tests "test,notebook" "${test_packages[@]}"
    in_turn build_fuzzers
}

run_tests() {
    cd "$top"
    # ./dev test statistics is short for ./dev test tests/python/statistics.
    if (($#)) && [[ ! -e $1 && $1 != */* && -e tests/python/$1 ]]; then
        set -- "tests/python/$1" "${@:2}"
    fi
    set_up_for "$@"
    if [[ ${1-} == tests/c || ${1-} == tests/c/ ]]; then
        exec ctest --test-dir "$build" --output-on-failure --no-tests=error "${@:2}"
    fi
    if (($#)); then
        exec python -m pytest "$@"
    fi
    local ctest_status=0 pytest_status=0
    say "C tests"
    ctest --test-dir "$build" --output-on-failure --no-tests=error | tee "$log/ctest.log" || ctest_status=$?
    say "Python tests, end-to-end tests, notebooks: three files at a time, for many wait"
    python -m pytest --numprocesses 3 --dist loadfile tests/corpus tests/python tests/end_to_end --nbmake notebooks | tee "$log/pytest.log" || pytest_status=$?
    say "in short"
    grep -E 'tests passed|tests failed' "$log/ctest.log" || echo "ctest: no closing line; see build/log/ctest.log"
    tail -n 1 "$log/pytest.log"
    ((ctest_status == 0 && pytest_status == 0))
}
