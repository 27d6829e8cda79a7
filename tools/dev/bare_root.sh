#!/usr/bin/env bash
# bare_root.sh ROOT USER HOME COMMAND: runs a shell command in a root file system as that user. It wants namespaces of mounts and
# processes that are its own (see `apart` in newcomer.sh): what it mounts vanishes with it.
set -euo pipefail
root=$1 user=$2 home=$3 command=$4

[[ $$ == 1 ]] || {
    echo "bare_root.sh: not the first process of a namespace; ./dev newcomer runs this" >&2
    exit 2
}

# As on a machine, / is a mount.
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
# Device nodes in a file system in memory: what happens to them does not happen to those of the machine.
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom tty fuse loop-control loop{0..63}; do
    [[ ! -e /dev/$device ]] || cp -a "/dev/$device" "$root/dev/"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
for number in 0:stdin 1:stdout 2:stderr; do
    ln -s "/proc/self/fd/${number%:*}" "$root/dev/${number#*:}"
done

# pip's settings that are variables, and folders of packages that they name.
settings=()
while IFS= read -r -d '' variable; do
    case ${variable%%=*} in
    PIP_* | *_[Pp][Rr][Oo][Xx][Yy] | SSL_CERT_FILE | SSL_CERT_DIR | REQUESTS_CA_BUNDLE | CURL_CA_BUNDLE) settings+=("$variable") ;;
    esac
done < <(env --null)
for folder in ${PIP_FIND_LINKS-}; do
    [[ -d $folder ]] || continue
    mkdir -p "$root$folder"
    mount --bind "$folder" "$root$folder"
done

status=0
chroot --userspec="$user" "$root" env -i "${settings[@]}" HOME="$home" USER="$user" LOGNAME="$user" LANG=C.UTF-8 TERM=dumb \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin bash -c "$command" || status=$?
exit "$status"
