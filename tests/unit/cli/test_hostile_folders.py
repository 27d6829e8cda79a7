"""Folders whose entries lead in circles, to devices, or are not what their names say; and names that would
write to a terminal."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from bounded import command
from made_spools import made_events, spool

pytestmark = pytest.mark.slow

NAMES = ("a.spool", "a.ensio", "trace.h5", "traces.otf2", "t.pfw", "t.pfw.gz", "recorder.mt", "t.strace")

ODD = "evil\x1b]0;title\x07\nname\u202e"


def to_itself(path: Path) -> None:
    path.symlink_to(path)


def to_its_folder(path: Path) -> None:
    path.symlink_to(path.parent)


def to_zeros(path: Path) -> None:
    path.symlink_to("/dev/zero")


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def a_folder(path: Path) -> None:
    (path / path.name).mkdir(parents=True)


def the_first_bytes(path: Path) -> None:
    """Of each format, and a hole of a TiB behind them."""
    first = {
        ".spool": b"ENSIOSPL",
        ".ensio": b"ENSIOJOB",
        ".h5": b"\x89HDF\r\n\x1a\n",
        ".otf2": b"\3BOTF2",
        ".pfw": b'[\n{"id":1,"name":"read","cat":"POSIX","pid":1,',
        ".strace": b'1 1700000000.000000 openat(AT_FDCWD, "/d/f", O_RDWR) = 3 <0.00001>\n',
        ".gz": b"\x1f\x8b\x08\0\0\0\0\0\0\3",
    }
    path.write_bytes(first.get(path.suffix, b"\0\nfopen\nMPI_File_open\n"))
    os.truncate(path, 1 << 40)


ENTRIES = (to_itself, to_its_folder, to_zeros, a_pipe, a_folder, the_first_bytes)


@pytest.mark.parametrize("make", ENTRIES, ids=lambda make: make.__name__)
def test_alone_they_are_refused_in_a_sentence(tmp_path: Path, make) -> None:
    for name in NAMES:
        folder = tmp_path / name / "run"
        folder.mkdir(parents=True)
        make(folder / name)
        for path in (folder, folder / name):
            code, told = command(tmp_path, "info", str(path))
            assert (code, told.count("\n")) == (2, 1), (name, path.name, told)
            assert told.startswith("ensio: ")


@pytest.mark.parametrize("make", ENTRIES, ids=lambda make: make.__name__)
def test_beside_a_good_spool_they_do_no_harm(tmp_path: Path, make) -> None:
    for name in set(NAMES) - {"recorder.mt", "t.strace"}:
        folder = tmp_path / name / "run"
        spool(folder / "good.spool", [made_events(10)], rank=0)
        make(folder / name)
        code, told = command(tmp_path, "info", str(folder))
        assert (code, told) == (0, "") or (make is the_first_bytes and code == 2 and told.count("\n") == 1), (
            name
        )
        shutil.rmtree(folder)


@pytest.mark.parametrize("suffix", [".spool", ".ensio", ".h5", ".otf2", ".pfw", ".gz", ""])
def test_names_with_control_characters_reach_no_terminal(tmp_path: Path, suffix: str) -> None:
    folder = tmp_path / ODD
    folder.mkdir()
    path = folder / f"{ODD}{suffix}"
    path.write_bytes(b"nothing")
    for name in (folder, path):
        code, told = command(tmp_path, "info", str(name))
        assert (code, told.count("\n")) == (2, 1), told
        assert told[:-1].isprintable()
