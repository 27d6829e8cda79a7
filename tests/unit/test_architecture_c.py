"""Include directions in the C code: which folder of libtrace may include which.

Includes are read from the text of the files; nothing is compiled. `KNOWN` lists violations that are left. It
may only shrink: a test fails when a violation is new, and when a listed one is gone but still listed.
"""

from __future__ import annotations

import re
from graphlib import TopologicalSorter
from pathlib import Path

LIBTRACE = Path(__file__).resolve().parents[2] / "libtrace"
TESTBED = LIBTRACE.parent / "testbed"

# What each folder of libtrace may include, besides itself and the public headers in include/ensio. The order
# is that of the layers, from the bottom to the top.
ALLOWED = {
    "core": "",
    "time": "core",
    "calls": "core",
    "spool": "core time",
    "files": "core spool",
    "sites": "core spool",
    "summary": "core time calls spool files",
    "surroundings": "core time spool summary",
    "threads": "core time spool surroundings summary",
    "jobfile": "core time spool surroundings files summary threads",
    "process": "core time calls spool surroundings files sites summary threads jobfile",
    "layers": "core time files",
    "layers/posix": "core time calls files sites threads process layers",
    "layers/stdio": "core calls files layers layers/posix",
    "layers/hdf5": "core calls layers",
    "layers/mpi": "core time calls spool files threads jobfile process layers",
    "layers/netcdf": "core time calls files threads layers layers/mpi",
    "otf2": "",
}

# What each part of the testbed may include of libtrace: never what needs the recorder's state.
ALLOWED_TO_TESTBED = {"pfsmodel": "", "replay": "", "simulate": "", "shim": "core calls layers"}

KNOWN: set[str] = set()

# Some names of tables are the values of macros.
_INCLUDE = re.compile(r'^\s*#\s*(?:include|define\s+\w+)\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def _folder_of(file: Path) -> str:
    return file.parent.relative_to(LIBTRACE).as_posix()


def _sources(top: Path) -> list[Path]:
    return sorted(file for file in top.rglob("*") if file.suffix in {".c", ".h", ".def"})


def _included(file: Path) -> list[Path]:
    """Files of libtrace that a file includes, without the public headers."""
    found = []
    for quote, name in _INCLUDE.findall(file.read_text()):
        places = ([file.parent] if quote == '"' else []) + [LIBTRACE]
        found += [place / name for place in places if (place / name).is_file()][:1]
    return [target.resolve() for target in found]


def _violations() -> set[str]:
    found = set()
    for file in _sources(LIBTRACE):
        folder = _folder_of(file)
        if folder.startswith("include"):
            continue
        allowed = {folder, *ALLOWED[folder].split()}
        found |= {
            f"{folder}/{file.name} -> {_folder_of(target)}/{target.name}"
            for target in _included(file)
            if _folder_of(target) not in allowed
        }
    return found


def test_includes_follow_the_arrows() -> None:
    assert _violations() == KNOWN


def test_allowed_arrows_have_no_cycle() -> None:
    order = list(TopologicalSorter({name: below.split() for name, below in ALLOWED.items()}).static_order())
    assert set(order) == set(ALLOWED)
    names = list(ALLOWED)
    for name, below in ALLOWED.items():
        assert all(names.index(other) < names.index(name) for other in below.split()), name


def test_every_arrow_is_used() -> None:
    used = {
        (_folder_of(file), _folder_of(target))
        for file in _sources(LIBTRACE)
        for target in _included(file)
        if _folder_of(file) != _folder_of(target)
    }
    assert {(name, other) for name, below in ALLOWED.items() for other in below.split()} <= used


def test_every_folder_is_in_the_table() -> None:
    folders = {_folder_of(file) for file in _sources(LIBTRACE)}
    assert {name for name in folders if not name.startswith("include")} == set(ALLOWED)


def test_public_headers_include_no_other_part() -> None:
    for file in _sources(LIBTRACE / "include"):
        assert all(target.parent == file.parent for target in _included(file)), file


def test_testbed_includes_only_what_needs_no_recorder() -> None:
    for part, allowed in ALLOWED_TO_TESTBED.items():
        for file in _sources(TESTBED / part):
            outside = {_folder_of(target) for target in _included(file) if target.is_relative_to(LIBTRACE)}
            assert outside <= set(allowed.split()), file


def test_files_are_not_over_600_lines() -> None:
    for file in _sources(LIBTRACE) + _sources(TESTBED):
        assert len(file.read_text().splitlines()) <= 600, file
