# shellcheck shell=bash
# ./dev newcomer: the README's two commands, in their order, where nothing is installed. A bare Debian is made by debootstrap
# in a scratch folder, with this machine's ways to packages: apt's sources, certificates, pip's settings.

newcomer_usage() {
    cat <<'USAGE'
usage: ./dev newcomer [OPTION ...] [-- TEST ...]

Needs root. What is committed is run in a bare Debian: by root, and by a user without sudo, who asks
for packages that root then installs. Logs are in build/log/newcomer-*.log.

  --demo-only      no tests
  --as root|user   one of the two only
  --release NAME   of Debian, bookworm or later; without, this machine's
  --keep           leave the scratch folder, which else is removed
  -- TEST ...      what root's ./dev test is to run; without, all tests
USAGE
}

newcomer() {
    local kinds="root user" keep="" demo_only="" release tests=() scratch failed=()
    release=$(. /etc/os-release && echo "$VERSION_CODENAME")
    while (($#)); do
        case $1 in
        --demo-only) demo_only=1 ;;
        --keep) keep=1 ;;
        --as)
            [[ ${2-} == root || ${2-} == user ]] || fail "--as takes root or user"
            kinds=$2
            shift
            ;;
        --release)
            [[ ${2-} =~ ^[a-z]+$ ]] || fail "--release takes the name of a release of Debian"
            release=$2
            shift
            ;;
        --)
            tests=("${@:2}")
            break
            ;;
        -h | --help)
            newcomer_usage
            return
            ;;
        *) fail "newcomer knows no $1; ./dev newcomer --help" ;;
        esac
        shift
    done
    ((EUID == 0)) || fail "newcomer makes a root file system, which only root can: sudo ./dev newcomer"
    need_packages debootstrap git util-linux
    [[ -z $(in_git status --porcelain --untracked-files=no) ]] || say "what is not committed is left out"

    scratch=$(mktemp -d "${TMPDIR:-/tmp}/ensio-newcomer-XXXXXX")
    say "the scratch folder is $scratch"
    # shellcheck disable=SC2064 # as they are now
    trap "leave_newcomer '$scratch' '$keep'" EXIT
    make_base "$scratch"
    local kind
    for kind in $kinds; do
        cp -a "$scratch/base" "$scratch/$kind"
        "newcomer_as_$kind"
        [[ $keep ]] || rm -rf --one-file-system "${scratch:?}/$kind"
    done
    ((${#failed[@]} == 0)) || fail "steps that failed for a newcomer: ${failed[*]}; see build/log/newcomer-*.log"
    say "newcomer: every step succeeded"
}

in_git() { git -c safe.directory='*' -C "$top" "$@"; }

# Ends what still runs in the roots, then removes them. Their mounts are in namespaces that end with what runs there.
leave_newcomer() {
    local scratch=$1 keep=$2 children
    mapfile -t children < <(jobs -p)
    ((${#children[@]} == 0)) || kill -KILL "${children[@]}" 2>/dev/null || true
    wait
    if [[ $keep ]]; then
        say "kept: $scratch"
    else
        rm -rf --one-file-system "$scratch" || { sleep 1 && rm -rf --one-file-system "$scratch"; }
    fi
}

# apart COMMAND...: in namespaces of mounts and processes, which end with it, or when this shell does.
apart() {
    setpriv --pdeathsig KILL unshare --mount --propagation private --pid --fork --kill-child --mount-proc "$@" &
    wait $!
}

# step NAME COMMAND...: with its output in a log; what fails is counted.
step() {
    local name=newcomer-$1 status=0 start=$SECONDS
    shift
    say "newcomer: ${name#newcomer-}"
    attempt "$name" "$@" || status=$?
    if ((status)); then
        tail -n 30 "$log/$name.log" >&2
        failed+=("${name#newcomer-}")
    fi
    say "newcomer: ${name#newcomer-}: status $status after $((SECONDS - start)) s: $(tail -n 1 "$log/$name.log")"
    return "$status"
}

declare -A home_of=([root]=/root [newcomer]=/home/newcomer)

# inside KIND USER COMMAND: by a shell in a root, as that user, in the clone.
inside() {
    local home=${home_of[$2]}
    apart bash "$top/tools/dev/bare_root.sh" "$scratch/$1" "$2" "$home" "cd $home/ensio && $3"
}

make_base() {
    local scratch=$1 base=$1/base mirror here
    here=$(. /etc/os-release && echo "$VERSION_CODENAME")
    mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' 2>/dev/null |
        awk -v release="$here" '$2 == release && $1 ~ /^http.*debian\/?$/ { print $1; exit }')
    [[ $mirror ]] || fail "apt's sources name no mirror of Debian $here: apt-get update, then again"
    say "a bare Debian $release, from $mirror"
    logged newcomer-debootstrap apart debootstrap --variant=minbase "$release" "$base" "$mirror"

    rm -f "$base/etc/apt/sources.list"
    cp -a /etc/apt/. "$base/etc/apt/"
    find "$base/etc/apt" -name '*.list' -o -name '*.sources' | xargs -r sed -i "s/\b$here\b/$release/g"
    echo 'APT::Get::Assume-Yes "true";' >"$base/etc/apt/apt.conf.d/99newcomer"
    local file
    for file in /etc/resolv.conf /etc/hosts /etc/ssl/certs/ca-certificates.crt /etc/pip.conf; do
        [[ ! -f $file ]] || install -D -m 644 "$file" "$base$file"
    done
    for file in /usr/share/keyrings /usr/local/share/ca-certificates; do
        [[ ! -d $file ]] || { mkdir -p "$base$file" && cp -a "$file/." "$base$file/"; }
    done
    chroot "$base" useradd --create-home --shell /bin/bash newcomer
    in_git bundle create -q "$scratch/head.bundle" HEAD
    local user home
    for user in "${!home_of[@]}"; do
        home=${home_of[$user]}
        for file in .config/pip/pip.conf .pip/pip.conf; do
            [[ ! -f $HOME/$file ]] || install -D -m 644 "$HOME/$file" "$base$home/$file"
        done
        git -c advice.detachedHead=false clone -q "$scratch/head.bundle" "$base$home/ensio"
        chroot "$base" chown -R "$user:" "$home"
    done
}

otf2_export='archive=$(mktemp -u) && ./dev run ensio export demo/*/ior --to otf2 "$archive" && test -s "$archive/traces.otf2"'

newcomer_as_root() {
    step root-demo inside root root "./dev demo" || return 0
    step root-otf2 inside root root "$otf2_export" || true
    [[ $demo_only ]] || step root-test inside root root "./dev test ${tests[*]@Q}" || true
}

newcomer_as_user() {
    local asked status=0
    say "newcomer: user-first: a user without sudo runs ./dev demo"
    attempt newcomer-user-first inside user newcomer "./dev demo" || status=$?
    mapfile -t asked < <(grep -E '^ *apt-get install ' "$log/newcomer-user-first.log")
    if ((status == 0 || ${#asked[@]} != 1)); then
        tail -n 30 "$log/newcomer-user-first.log" >&2
        failed+=(user-first)
        return
    fi
    say "newcomer: user-first: status $status, and asks for:${asked[0]#*install}"
    step user-packages inside user root "apt-get update && ${asked[0]}" || return 0
    step user-demo inside user newcomer "./dev demo" || return 0
    step user-otf2 inside user newcomer "$otf2_export" || true
    [[ $demo_only ]] || step user-test inside user newcomer "./dev test tests/unit/cli" || true
}
