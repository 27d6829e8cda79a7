"""Programs that tests build: a command makes the same of the same sources, and runs once a session."""

import os
import shutil
import subprocess
import tempfile
from functools import cache
from hashlib import sha256
from pathlib import Path

from places import ROOT

COMPILER = """#!/bin/sh
made= source= before=
for word; do
    case $before in -o) made=$word ;; -c) source=$word ;; esac
    before=$word
done
case $source in /*) ;; *) source=$PWD/$source ;; esac
of_root() {{ # where setuptools builds, CMake's folder lies deeper
    case $1 in {tree}/*) ;; *) echo /dev/null; return ;; esac
    echo "{root}/${{1#{tree}/}}" | sed 's,/temp[^/]*/cmake/,/,'
}}
case $made in *.o)
    known=$(of_root "$PWD/$made")
    if cmp -s "$source" "$(of_root "$source")" && cp "$known" "$made" 2>/dev/null; then
        [ ! -e "$known.d" ] || cp "$known.d" "$made.d"
        exit
    fi
esac
exec /usr/bin/{name} "$@" -O0 -g0
"""
"""A compiler of what is hardly run: it takes the object that the tree has of the same source, or is fast."""


@cache
def _kept() -> Path:
    """The folder that all processes of the session share (conftest.py names it)."""
    return Path(os.environ.get("ENSIO_TESTS_BUILT") or tempfile.mkdtemp(prefix="ensio-built-"))


def build(program: Path, *command: object, **options) -> Path:
    """Run a compiler's command with ``-o program`` behind it, or copy what it made before."""
    words = [str(word) for word in command]
    sources = [Path(word) for word in words if word.endswith((".c", ".cpp", ".f90"))]
    asked = [*(word.encode() for word in words), *(source.read_bytes() for source in sources)]
    kept = _kept() / sha256(b"\0".join(asked)).hexdigest()
    if not kept.exists():
        half = kept.with_suffix(f".{os.getpid()}")
        subprocess.run([*words, "-o", half], check=True, **options)
        half.rename(kept)
    return Path(shutil.copy(kept, program))


def take_built_objects(folder: Path, tree: Path) -> None:
    """Put compilers into a folder that take objects of this tree for the same sources of a copy of it."""
    for name in ("cc", "gcc"):
        (folder / name).unlink(missing_ok=True)
        (folder / name).write_text(COMPILER.format(name=name, root=ROOT, tree=tree))
        (folder / name).chmod(0o755)
