"""A trace.h5 that would have ensio read other files, loop forever, or take all memory."""

from __future__ import annotations

import random
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
from bounded import command
from made_spools import made_events, spool

from ensembles.model.errors import EnsioError
from ensembles.readers.tracefile.checked_parts import read_texts
from ensembles.readers.tracefile.tracefile import TraceFileSource
from ensembles.run.collect import collect
from ensembles.summaries.ranktable import COLUMNS as RANK_COLUMNS
from ensembles.writers.tracefile.events import put_texts

pytestmark = pytest.mark.slow

ROWS = 3000


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    spool(folder / "s.spool", [made_events(ROWS)], rank=0)
    collect(str(folder))
    return folder / "trace.h5"


def in_the_other(file: h5py.File) -> str:
    """The path of a good trace.h5 beside this one."""
    return str(Path(file.filename).with_name("other.h5"))


def link_to_the_other(name: str) -> Callable[[h5py.File], None]:
    def forge(file: h5py.File) -> None:
        del file[name]
        file[name] = h5py.ExternalLink(in_the_other(file), f"/{name}")

    return forge


def link_to(name: str, where: str) -> Callable[[h5py.File], None]:
    def forge(file: h5py.File) -> None:
        del file[name]
        file[name] = h5py.SoftLink(where)

    return forge


def data_of_the_other(file: h5py.File) -> None:
    """A column whose bytes are those of another file."""
    del file["events/duration"]
    file["events"].create_dataset("duration", (ROWS,), "i8", external=[(in_the_other(file), 0, ROWS * 8)])


def view_of_the_other(file: h5py.File) -> None:
    layout = h5py.VirtualLayout((ROWS,), "i8")
    layout[:] = h5py.VirtualSource(in_the_other(file), "events/duration", (ROWS,))
    del file["events/duration"]
    file["events"].create_virtual_dataset("duration", layout)


def zeros_without_end(file: h5py.File) -> None:
    """Some MB of zeros for each of many numbers: a file of 4 MB that says 4 GiB."""
    rows = 1 << 24
    del file["processes/pid"]
    pids = file["processes"].create_dataset("pid", (32 * rows,), "i8", chunks=(rows,), compression="gzip")
    packed = zlib.compress(bytes(8 * rows), 1)
    for first in range(0, len(pids), rows):
        pids.id.write_direct_chunk((first,), packed)


def long_texts_of_nothing(file: h5py.File) -> None:
    """Texts of a MiB that unpack from a KiB each."""
    del file["files"]
    length, count = 1 << 20, 300
    files = file.create_dataset(
        "files", (count,), h5py.string_dtype("utf-8", length), chunks=(1,), compression="gzip"
    )
    for row in range(count):
        files.id.write_direct_chunk((row,), zlib.compress((b"%d" % row).ljust(length, b"x"), 9))


def texts_of_variable_length(file: h5py.File) -> None:
    """They lie in HDF5's global heap, which has no checksums."""
    texts = [text.decode() for text in file["files"][:]]
    del file["files"]
    file.create_dataset("files", data=texts, dtype=h5py.string_dtype())


def a_text_of_variable_length(file: h5py.File) -> None:
    file.attrs.create("mode", "trace", dtype=h5py.string_dtype())


def an_attribute_of_many_numbers(file: h5py.File) -> None:
    del file.attrs["tasks"]
    h5py.h5a.create(file.id, b"tasks", h5py.h5t.STD_I64LE, h5py.h5s.create_simple((1 << 20,)))


def a_chunk_beyond_all_memory(file: h5py.File) -> None:
    del file["processes/pid"]
    file["processes"].create_dataset(
        "pid", (1,), "i8", maxshape=(None,), chunks=((1 << 29) - 1,), compression="gzip"
    )


HOSTILE = {
    "a group in another file": link_to_the_other("calls"),
    "events in another file": link_to_the_other("events"),
    "a column in another file": link_to_the_other("events/duration"),
    "texts in another file": link_to_the_other("files"),
    "regions in another file": link_to_the_other("regions"),
    "a link to itself": link_to("files", "/files"),
    "links that go round": link_to("events", "/index/../events"),
    "a column that is a link": link_to("events/duration", "/events/start"),
    "bytes of another file": data_of_the_other,
    "a view of another file": view_of_the_other,
    "zeros without end": zeros_without_end,
    "long texts of nothing": long_texts_of_nothing,
    "texts of variable length": texts_of_variable_length,
    "a text of variable length": a_text_of_variable_length,
    "an attribute of many numbers": an_attribute_of_many_numbers,
    "a chunk beyond all memory": a_chunk_beyond_all_memory,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_leads_out_of_the_file_or_of_memory_is_refused(tmp_path: Path, whole: Path, kind: str) -> None:
    shutil.copy(whole, tmp_path / "other.h5")
    path = tmp_path / "trace.h5"
    shutil.copy(whole, path)
    with h5py.File(path, "r+", libver="v110") as file:
        HOSTILE[kind](file)
    code, told = command(tmp_path, "phases" if "view" in kind or "bytes" in kind else "info", str(path))
    assert (code, told.count("\n")) == (2, 1), told
    assert told.startswith(f"ensio: {path} is not a complete trace.h5")


def test_sums_by_rank_that_are_not_whole_numbers_are_damage(tmp_path: Path, whole: Path) -> None:
    path = tmp_path / "trace.h5"
    shutil.copy(whole, path)
    with h5py.File(path, "r+", libver="v110") as file:
        file.pop("ranks", None)
        group = file.create_group("ranks")
        for name in RANK_COLUMNS:
            group[name] = np.full(1, np.nan if name == "count" else 0)
    with pytest.raises(EnsioError, match="not a complete"):
        TraceFileSource(str(path)).ranks()


def test_a_text_that_is_said_many_times_is_held_once(tmp_path: Path, whole: Path) -> None:
    """A thousand tasks of one long command, which unpack from very few bytes, are accepted."""
    path = tmp_path / "trace.h5"
    with h5py.File(path, "w", libver="v110") as file:
        put_texts(file, "commands", ["./program " + "x" * 100_000] * 1000, "of each task")
    assert path.stat().st_size < 1_000_000
    with h5py.File(path) as file:
        texts = read_texts(file, "commands")
    assert len(texts) == 1000
    assert set(texts) == {"./program " + "x" * 100_000}


def test_groups_that_hold_themselves_are_not_followed(tmp_path: Path, whole: Path) -> None:
    path = tmp_path / "trace.h5"
    shutil.copy(whole, path)
    with h5py.File(path, "r+", libver="v110") as file:
        file["events/again"] = file["events"]
        file["index/up"] = file["/"]
    assert command(tmp_path, "info", str(path)) == (0, "")


def test_nothing_lies_in_the_file_that_has_no_checksum(whole: Path) -> None:
    """By the signatures of HDF5's format: from what was damaged in structures without one, its library may
    never come back."""
    data = whole.read_bytes()
    assert data[8] == 3
    for signature in (b"GCOL", b"SNOD", b"HEAP", b"TREE"):  # global heaps; groups and chunks of old kinds
        assert signature not in data
    assert data.count(b"OHDR") > 50


def test_a_file_of_old_headers_is_refused_before_hdf5_reads_it(tmp_path: Path, whole: Path) -> None:
    """Another program has copied it without checksums."""
    path = tmp_path / "trace.h5"
    with h5py.File(whole) as source, h5py.File(path, "w", libver=("earliest", "v110")) as target:
        for name in source:
            source.copy(name, target)
        for name, value in source.attrs.items():
            target.attrs[name] = value
    code, told = command(tmp_path, "info", str(path))
    assert (code, told.count("\n")) == (2, 1)
    assert "has no checksums" in told


def test_an_empty_text_that_lost_its_number_does_not_keep_us(tmp_path: Path) -> None:
    """HDF5 2.0 loops forever in H5HG__cache_heap_deserialize: an object of the global heap of number 0
    and of no length leads to itself. Files of version 3 had such texts."""
    path = tmp_path / "trace.h5"
    with h5py.File(path, "w", libver="v110") as file:
        file.attrs.create("unit", "", dtype=h5py.string_dtype())
        file.attrs.create("format", "ensio trace", dtype=h5py.string_dtype())
    data = bytearray(path.read_bytes())
    first = data.index(b"GCOL") + 16
    lengths = {}
    while int.from_bytes(data[first : first + 2], "little"):
        length = int.from_bytes(data[first + 8 : first + 16], "little")
        lengths[length] = first
        first += 16 + -(-length // 8) * 8
    assert 0 in lengths
    data[lengths[0]] = 0
    path.write_bytes(data)
    code, told = command(tmp_path, "info", str(path))
    assert (code, told.count("\n")) == (2, 1), told


def damaged(data: bytes, dice: random.Random) -> bytes:
    """Cut it off, or change bytes, most of them among what HDF5 says about the columns."""
    if dice.random() < 0.1:
        return data[: dice.randrange(len(data))]
    changed = bytearray(data)
    for _ in range(dice.choice((1, 1, 2, 8, 40))):
        at = dice.randrange(min(len(changed), dice.choice((200, 2000, 20_000, 1 << 30))))
        length = dice.choice((1, 2, 4, 8))
        if dice.random() < 0.6:
            changed[at] ^= 1 << dice.randrange(8)
        else:
            changed[at : at + length] = dice.choice((b"\xff", b"\0", b"\x7f", b"\x01")) * length
    return bytes(changed)


def test_commands_tell_damage_in_a_sentence(tmp_path: Path, whole: Path) -> None:
    data, path = whole.read_bytes(), tmp_path / "trace.h5"
    for seed in range(6):
        path.write_bytes(damaged(data, random.Random(seed)))
        code, told = command(tmp_path, "events", str(path), "--format", "csv")
        assert (code, told.count("\n")) in ((0, 0), (2, 1)), (seed, told)
