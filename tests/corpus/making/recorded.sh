#!/usr/bin/env bash
# Records the held runs of real programs: recorded.sh TREE OUTPUT, as root, TREE being a built working tree.
# In separate mount and host name spaces, so that no path, host or user of the machine gets into what is kept.
set -euo pipefail

if [[ ${1-} != --inside ]]; then
    here=$(realpath "${BASH_SOURCE[0]}")
    tree=$(realpath "$1")
    mkdir -p "$2"
    output=$(realpath "$2")
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    mkdir "$scratch"/{app,runs,tmp,bin,venv}
    cmake --install "$tree/build" --prefix "$scratch/ensio" >/dev/null
    for program in calls asynchronous failing stopped; do
        "$tree/build/bin/ensio-cc" gcc -O1 -w "${here%/*}/$program.c" -o "$scratch/bin/$program" -pthread
    done
    "$tree/build/bin/ensio-cc" gcc -O1 -w "$tree/tests/end_to_end/programs/regions.c" -o "$scratch/bin/regions" -pthread \
        -I "$tree/libtrace/include"
    mpicc -O1 -w "${here%/*}/overlap.c" -o "$scratch/bin/overlap"
    env -i unshare --mount --uts --fork bash "$here" --inside "$scratch" "$tree" 2>&1 | cat
    cp -r "$scratch"/runs/* "$output"
    exit
fi

scratch=$2 tree=$3
hostname node0001
mount --bind "$scratch" /srv
mount --bind "$tree/.venv" /srv/venv
sed 's|^root:.*|someone:x:0:0:someone:/srv/app:/bin/bash|' /etc/passwd >/srv/passwd
mount --bind /srv/passwd /etc/passwd
while read -r point; do
    case $point in
    / | /proc | /sys | /dev | /dev/pts | /dev/shm | /srv | /srv/venv | /etc/passwd) ;;
    *) umount -l "$point" ;;
    esac
done < <(awk '{ print $5 }' /proc/self/mountinfo | sort -r | uniq)
cd /srv/app
export PATH=/srv/ensio/bin:/srv/bin:/usr/bin:/bin HOME=/srv/app TMPDIR=/srv/tmp LANG=C.UTF-8 USER=someone ENSIO_BANNER=0
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe OMPI_MCA_plm_rsh_agent=/bin/false
runs=/srv/runs

ensio() { /srv/venv/bin/python -m ensembles.cli.main "$@"; }
say() { echo "== $*" >&2; }
replay() { # NAME ARGUMENTS...
    say "replay $*"
    ensio replay "${@:2}" -o "$runs/$1" >/dev/null
}
preloaded() { # NAME COMMAND...
    say "run $*"
    ensio run -o "$runs/$1" -- "${@:2}" >/dev/null
}
relinked() { # NAME COMMAND...
    say "relinked $*"
    ENSIO_DIR=$runs/$1 "${@:2}"
}

replay replay-ior-8 ior --set block_bytes=1MiB
replay replay-ior-64 ior --tasks 64 --set block_bytes=128KiB
replay replay-ior-2x10 ior --tasks 2 --set repetitions=10 --set block_bytes=4MiB
replay replay-ior-calls ior --tasks 4 --calls 8 --set block_bytes=1MiB
replay replay-ior-stdio ior --tasks 4 --layer stdio --set block_bytes=256KiB
replay replay-madbench madbench --tasks 8 --set scale=1/1024
replay replay-gcrm gcrm --tasks 16 --set scale=1/64
replay replay-btio btio --set shrink=408
replay replay-hacc hacc --tasks 4 --set shrink=50
replay replay-benchio benchio --tasks 8 --set block_x=32 --set block_y=32 --set block_z=8
replay replay-olam olam --tasks 4
ENSIO_MODE=profile replay replay-profile ior --tasks 8 --calls 4 --set block_bytes=512KiB
ENSIO_MODE="tail" replay replay-tail ior --tasks 8 --calls 8 --set block_bytes=256KiB
ENSIO_JOBFILE=0 replay replay-spools ior --tasks 3 --set repetitions=4 --set block_bytes=64KiB
for number in 1 2 3; do
    replay "replay-repeated-$number" ior --tasks 4 --set repetitions=4 --set block_bytes=256KiB
done

say "overlap"
for component in ompio romio321; do
    ENSIO_DIR=$runs/overlap-$component LD_PRELOAD=/srv/ensio/lib/libensio-preload.so \
        mpiexec --mca io $component -n 2 overlap $component.dat
done
relinked overlap-aio asynchronous aio.dat
# The runs overlap-* were recorded when a request lasted until its completion; now it has a post and a flight.
ENSIO_DIR=$runs/flights-ompio LD_PRELOAD=/srv/ensio/lib/libensio-preload.so mpiexec --mca io ompio -n 2 overlap flights.dat
relinked flights-aio asynchronous aio.dat
relinked one-call calls 1 >one.out
relinked forty-calls calls 40 >forty.out
relinked no-call calls 0 >none.out
relinked failing failing failing.dat || true
relinked killed stopped stopped.dat || true
relinked regions regions 2 >/dev/null || true
ENSIO_MAX_BYTES=200000 relinked dropped calls 20000 >dropped.out

mkdir -p tree/{a,b,c}
for file in tree/{a,b,c}/{1..12}.txt; do seq 1 700 >"$file"; done
preloaded tar tar cf tree.tar tree
preloaded dd dd if=/dev/zero of=dd.out bs=64k count=200 conv=fsync
preloaded sqlite sqlite3 test.db 'create table t(a, b); insert into t values(1, 2); insert into t select a + 1, b from t; select count(*) from t;'
preloaded shell bash -c 'cat tree/a/*.txt | sort | uniq -c > counts.txt; cp counts.txt copy.txt; wc -l copy.txt'
preloaded fio fio --name=job --directory=/srv/app --ioengine=psync --rw=randrw --bs=16k --size=2m --numjobs=2 --unlink=1 --group_reporting
preloaded h5py /srv/venv/bin/python -c 'import h5py, numpy
with h5py.File("data.h5", "w") as file:
    for step in range(6):
        file.create_dataset(f"step{step}", data=numpy.arange(50000.0), chunks=(5000,))
with h5py.File("data.h5") as file:
    for step in range(6): file[f"step{step}"][::7]'
simulate() { # NAME ARGUMENTS...
    say "simulate $*"
    (cd "$runs" && ensio simulate "${@:2}" -o "$1" >/dev/null)
}
for seed in 1 2 3 4; do
    simulate "sim-healthy-$seed" ior --tasks 32 --fs healthy --seed "$seed"
    simulate "sim-slow-$seed" ior --tasks 32 --fs healthy --fault slow-target=1 --seed "$seed"
done
simulate sim-ior-1024 ior --tasks 1024 --fs franklin --seed 1
simulate sim-ior-calls ior --tasks 64 --fs franklin --calls 4 --seed 2
simulate sim-madbench-faulty madbench --set sizes=laptop --fs franklin --set fs_scale=1/64
simulate sim-madbench-patched madbench --tasks 16 --fs franklin-patched --seed 3
simulate sim-gcrm gcrm --set sizes=laptop --tasks 64 --fs jaguar --seed 4
simulate sim-profile ior --tasks 64 --fs franklin --seed 5 --mode profile
for scenario in strided-readahead straggler-task straggler-node cache-cliff metadata-storm sync-per-write \
    collective-coordination imbalance healthy-input; do
    say "scenario $scenario"
    (cd "$runs" && ensio scenarios run --seed 1 --scenario $scenario -o scenarios >/dev/null && mv scenarios/$scenario scenario-$scenario)
done
rmdir "$runs/scenarios"

say "strace"
strace -ttt -T -f -o "$runs/strace" tar cf again.tar tree
say "OTF2"
ensio export --to otf2 "$runs/replay-ior-2x10" "$runs/otf2-of-replay"
ensio collect "$runs/replay-ior-calls" -o "$runs/replay-collected.h5"
