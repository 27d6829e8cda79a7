# shellcheck shell=bash
# How ./dev talks and runs its steps.

say() {
    if [[ -t 2 ]]; then
        printf '\033[1m== %s\033[0m\n' "$*" >&2
    else
        printf '== %s\n' "$*" >&2
    fi
}

fail() {
    echo "dev: $*" >&2
    ask_for_packages
    exit 1
}

# Every ten seconds, the last line of a log.
watch_log() {
    local seconds
    for ((seconds = 10; ; seconds += 10)); do
        sleep 10 >/dev/null 2>&1
        kill -0 $$ || return
        printf '   %4d s  %.100s\n' "$seconds" "$(tail -n 1 "$1" | tr -d '\r')" >&2
    done
}

# attempt NAME COMMAND...: runs a step with its output in a log, and shows that it is alive; returns its status.
attempt() {
    local file=$log/$1.log status=0 watcher
    shift
    mkdir -p "$log"
    : >"$file"
    watch_log "$file" 9>&- &
    watcher=$!
    "$@" </dev/null >"$file" 2>&1 || status=$?
    kill "$watcher"
    wait "$watcher" 2>/dev/null || true
    return "$status"
}

# logged NAME COMMAND...: a step without which there is no going on.
logged() {
    local name=$1
    attempt "$@" || give_up "$name"
}

# give_up NAME: ends with what a failed step printed last.
give_up() {
    tail -n 20 "$log/$1.log" >&2
    fail "$1 failed; all of its output is in ${log#"$top"/}/$1.log"
}

# reason NAME PATTERN: the last line of a log that matches, for a sentence.
reason() {
    grep -E "$2" "$log/$1.log" | tail -n 1 | sed 's/^ *//; s/\r//g' || true
}

as_root() {
    if ((EUID == 0)); then
        "$@"
    else
        sudo "$@"
    fi
}
