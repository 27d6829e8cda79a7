# shellcheck shell=bash
# What tests need, and how they are run.

# The parts of the tests, each with what it needs: "python" (Python and a C compiler) or "tools" (what build/ has too), then
# Debian packages, and +NAME for an extra of setup.cfg.
declare -A needs_of=(
    [tests/c]="tools"
    [tests/corpus]="tools +darshan +otf2 +pandas +parquet"
    [tests/unit]="tools chromium fish git hdf5-tools musl-tools sqlite3 strace zsh $(printf '+%s ' "${test_extras[@]}")"
    [tests/unit/answers]="python"
    [tests/unit/cli]="tools fish musl-tools zsh +darshan +filters +otf2 +pandas +parquet"
    [tests/unit/comparison]="python"
    [tests/unit/diagnosis]="python +darshan"
    [tests/unit/ensemble]="python"
    [tests/unit/history]="python +darshan"
    [tests/unit/model]="python"
    [tests/unit/passes]="python +dask"
    [tests/unit/readers]="tools hdf5-tools sqlite3 strace +darshan +filters +otf2 +pandas"
    [tests/unit/readers/common]="python"
    [tests/unit/readers/foreign]="tools sqlite3 strace +darshan +otf2"
    [tests/unit/readers/native]="tools"
    [tests/unit/readers/tracefile]="python hdf5-tools +darshan +filters +otf2"
    [tests/unit/run]="python +notebook"
    [tests/unit/statistics]="python"
    [tests/unit/structure]="python +darshan +pandas"
    [tests/unit/summaries]="python +darshan"
    [tests/unit/viz]="tools chromium +browser +darshan +notebook"
    [tests/unit/workloads]="tools"
    [tests/unit/writers]="python hdf5-tools +filters +pandas +parquet"
    [tests/end_to_end/test_dev.py]="tools git strace"
    [tests/end_to_end/test_documents.py]="python git +docs"
)

# What ./dev test --quick runs needs.
quick_needs="tools fish git hdf5-tools musl-tools sqlite3 strace zsh +darshan +filters +otf2 +pandas +parquet"

# list_parts: the parts by the name that ./dev test takes, with what they need.
list_parts() {
    local entry
    for entry in "${!needs_of[@]}"; do
        [[ $entry == tests/unit || $entry == tests/end_to_end/* ]] ||
            printf '  %-18s %s\n' "$(sed 's,^tests/\(unit/\)\?,,' <<<"$entry")" "${needs_of[$entry]}"
    done | sort
}

# needs_at PATH: what a file or folder of tests needs; "all" where the table does not know.
needs_at() {
    local path=$1
    while [[ $path == */* ]]; do
        if [[ ${needs_of[$path]-} ]]; then
            echo "${needs_of[$path]}"
            return
        fi
        path=${path%/*}
    done
    echo all
}

# needs ARGUMENT...: what the tests named by pytest's arguments need together.
needs() {
    local argument path level=python wanted=() paths=0 words
    for argument in "$@"; do
        path=${argument%%::*}
        path=${path#"$top"/}
        path=${path#./}
        path=${path%/}
        [[ $path != -* && -e $top/$path ]] || continue
        paths=1
        read -ra words <<<"$(needs_at "$path")"
        case ${words[0]} in
        all)
            echo all
            return
            ;;
        tools) level=tools ;;
        esac
        wanted+=("${words[@]:1}")
    done
    if ((paths)); then
        echo "$level" "${wanted[@]}"
    else
        echo all
    fi
}

# set_up_for NEEDS: these, and no more.
set_up_for() {
    local words word extras=test packages=()
    read -ra words <<<"$1"
    for word in "${words[@]:1}"; do
        case $word in
        +*) extras+=,${word#+} ;;
        *) packages+=("$word") ;;
        esac
    done
    case ${words[0]} in
    python) in_turn make_python "$extras" "${packages[@]}" ;;
    tools) set_up_tests "$extras" "${packages[@]}" ;;
    *) set_up_all_tests ;;
    esac
}

# make_python EXTRAS PACKAGE...: the Python package without what build/ has.
make_python() {
    need_packages "${python_packages[@]}" "${@:2}"
    install_python "$1"
    compile_python
}

set_up_all_tests() {
    set_up_tests "$all_test_extras" "${test_packages[@]}"
    in_turn build_fuzzers
}

run_tests() {
    cd "$top"
    case ${1-} in
    "") run_all_tests ;;
    --quick) run_quick_tests "${@:2}" ;;
    --floors | --newest) test_versions "${1#--}" "${@:2}" ;;
    -*) run_part "$@" ;;
    *)
        # ./dev test statistics is short for ./dev test tests/unit/statistics.
        local folder
        for folder in tests tests/unit; do
            [[ $1 == [./]* || ! -e $folder/$1 ]] || set -- "$folder/$1" "${@:2}"
        done
        run_part "$@"
        ;;
    esac
}

run_part() {
    set_up_for "$(needs "$@")"
    if [[ ${1%/} == tests/c ]]; then
        exec ctest --test-dir "$build" --output-on-failure --no-tests=error "${@:2}"
    fi
    exec python -m pytest "$@"
}

# test_versions floors|newest [TEST...]: with the lowest versions that setup.cfg allows, or the newest that there are.
test_versions() {
    venv=$build/$1
    if [[ $1 == floors ]]; then
        sed -nE 's/^ +([a-zA-Z0-9_-]+)(\[.*\])?>=([0-9.]+).*/\1==\3/p' setup.cfg | grep -v ^setuptools >"$venv.txt"
        export PIP_CONSTRAINT=$venv.txt
    else
        export PIP_UPGRADE=1 PIP_UPGRADE_STRATEGY=eager
    fi
    shift
    (($#)) || set -- tests/unit/{answers,comparison,diagnosis,ensemble,history,model,readers,statistics,structure,summaries,writers}
    run_part "$@"
}

# Everything that is fast, and a few runs from end to end: pyproject.toml says what is slow.
run_quick_tests() {
    set_up_for "$quick_needs"
    local status=0 end_to_end
    # Files without such a test are not even imported.
    mapfile -t end_to_end < <(grep -l 'pytest.mark.quick' tests/end_to_end/test_*.py)
    ctest --test-dir "$build" --quiet --output-on-failure --no-tests=error || status=$?
    python -m pytest -m "not slow and not long and not real" --numprocesses "$(nproc)" --dist loadfile \
        tests/corpus tests/unit "${end_to_end[@]}" "$@" || status=$?
    return "$status"
}

# Tries up to three failed tests once more, with nothing else at work. What passes then met a busy machine or depends on its
# neighbours. It is named at the end, for it is a defect, though none of the change under test.
try_alone() {
    local failed
    failed=$(grep -E '^(FAILED|ERROR) ' "$log/pytest.log" | sed -E 's/^(FAILED|ERROR) //; s/ - .*//' | sort -u)
    (($(wc -l <<<"$failed") <= 3)) || return 1
    say "once more, alone: ${failed//$'\n'/, }"
    python -m pytest --last-failed --last-failed-no-failures none tests/corpus tests/unit tests/end_to_end |
        tee "$log/pytest-alone.log" || return 1
    unsteady=${failed//$'\n'/, }
}

run_all_tests() {
    set_up_all_tests
    local ctest_status=0 pytest_status=0 prepared
    say "C tests"
    [[ -z $(find tests -name '*.py' -newer "$build/.rewritten" -print -quit 2>&1) ]] ||
        env -u PYTHONDONTWRITEBYTECODE python -m pytest --collect-only -qq tests/{end_to_end,corpus,unit} >"$build/.rewritten" 2>&1 &
    prepared=$! # while the C tests wait, pytest rewrites the assertions of files that have changed, once for its three processes
    ctest --test-dir "$build" --output-on-failure --no-tests=error | tee "$log/ctest.log" || ctest_status=$?
    wait "$prepared" || true  # what cannot be collected is reported below
    say "Python tests, end-to-end tests, notebooks: three files at a time, for many wait"
    python -m pytest --numprocesses 3 --dist loadfile --no-loadscope-reorder tests/end_to_end tests/corpus tests/unit \
        --junitxml="$log/pytest.xml" | # the time of each test
        tee "$log/pytest.log" || pytest_status=$?
    if ((pytest_status == 1)); then
        try_alone && pytest_status=0
    fi
    say "in short"
    grep -E 'tests passed|tests failed' "$log/ctest.log" || echo "ctest: no closing line; see build/log/ctest.log"
    tail -n 1 "$log/pytest.log"
    [[ -z ${unsteady-} ]] || printf 'unsteady, to be mended: failed among others, passed alone: %s\n' "$unsteady"
    ((ctest_status == 0 && pytest_status == 0))
}
