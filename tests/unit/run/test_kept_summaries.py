"""Kept summaries: found again, and not believed if anything is wrong with them or with the run."""

import os
import shutil
import stat
import time
import zlib
from contextlib import suppress
from functools import partial
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic_runs import synthetic_run

import ensembles as en
from ensembles.files import user_cache
from ensembles.passes import kept as codec
from ensembles.passes.group import SummaryRequest
from ensembles.passes.kept import NotKept, key_of, restore, seal, to_bytes, unseal
from ensembles.passes.summary import Summary, ignoring_run
from ensembles.run import kept
from ensembles.run.collect import collect
from ensembles.run.reading import RunReading
from ensembles.run.selection import Selection
from ensembles.structure.phases import detect
from ensembles.summaries.calltable import CallTable
from ensembles.summaries.raster import Raster
from ensembles.summaries.rate import RateCurve

TABLE = ignoring_run(CallTable)
list_folder = os.listdir


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, for runs of any size and age."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("ENSIO_CACHE", raising=False)
    monkeypatch.setattr(kept, "LEAST_FILE_BYTES", 1)
    monkeypatch.setattr(kept, "SETTLED_NS", 0)
    return tmp_path / "cache" / "ensio"


@pytest.fixture
def passes(monkeypatch):
    """The passes over events that are made."""
    made = []
    whole = RunReading._pass

    def counted(run, requests, selection):
        made.append(sorted(requests))
        return whole(run, requests, selection)

    monkeypatch.setattr(RunReading, "_pass", counted)
    return made


@pytest.fixture
def directory(tmp_path):
    synthetic_run(tmp_path / "run", 4, 300, seed=5, tasks_per_node=2, phases=3)
    return tmp_path / "run"


def calls(path, **filters):
    """The calls of a run, newly opened."""
    run = en.open(path)
    return run.summarize(TABLE, selection=Selection.parse(**filters).for_run(run)).totals


def test_a_second_command_makes_no_pass(directory, cache, passes):
    first = calls(directory)
    assert len(passes) == 1
    assert calls(directory) == first
    assert len(passes) == 1
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    assert [stat.S_IMODE(path.stat().st_mode) for path in cache.iterdir()] == [0o600]


def test_each_selection_is_kept_by_itself(directory, cache, passes):
    writes, reads = calls(directory, op="write"), calls(directory, op="read")
    assert {call.op for call in writes} == {"write"}
    assert {call.op for call in reads} == {"read"}
    assert (calls(directory, op="write"), calls(directory, op="read")) == (writes, reads)
    assert len(passes) == 2


def test_the_cache_can_be_switched_off_and_deleted(directory, cache, passes, monkeypatch):
    first = calls(directory)
    monkeypatch.setenv("ENSIO_CACHE", "0")
    assert calls(directory) == first
    assert len(passes) == 2
    monkeypatch.delenv("ENSIO_CACHE")
    shutil.rmtree(cache)
    assert calls(directory) == first
    assert len(passes) == 3
    assert list(cache.iterdir())


def test_small_runs_and_new_files_are_not_cached(directory, cache, passes, monkeypatch):
    monkeypatch.setattr(kept, "SETTLED_NS", 10**12)
    calls(directory)
    monkeypatch.setattr(kept, "SETTLED_NS", 0)
    monkeypatch.setattr(kept, "LEAST_FILE_BYTES", 1 << 40)
    calls(directory)
    assert len(passes) == 2
    assert not cache.exists()


def test_a_run_that_changed_after_it_was_opened_is_not_cached(directory, cache, monkeypatch):
    monkeypatch.setattr(kept, "SETTLED_NS", 50_000_000)  # longer than a step of the kernel's clock of files
    time.sleep(0.2)
    run = en.open(directory)
    spool = next(path for path in directory.iterdir() if path.is_file())
    spool.touch()
    run.summarize(TABLE)
    assert not cache.exists()
    time.sleep(0.2)
    calls(directory)
    assert cache.exists()


def appended(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more")


def of_the_same_size(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def with_the_old_time(path: Path) -> None:
    status = path.stat()
    of_the_same_size(path)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def another_file(path: Path) -> None:
    status = path.stat()
    shutil.copy2(path, path.with_suffix(".copy"))
    os.replace(path.with_suffix(".copy"), path)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize("change", [appended, of_the_same_size, with_the_old_time, another_file])
def test_changed_files_are_other_runs(directory, cache, change):
    before = kept.KeptSummaries(en.open(directory))._identity
    assert before == kept.KeptSummaries(en.open(directory))._identity
    run = en.open(directory)
    change(sorted(path for path in directory.iterdir() if path.is_file())[0])
    held = kept.KeptSummaries(run)
    assert held._identity not in (None, before)


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def flipped(content: bytes) -> bytes:
    place = len(content) * 2 // 3
    return content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :]


def empty(_: bytes) -> bytes:
    return b""


def of_another_version(content: bytes) -> bytes:
    return content.replace(b"ensio kept\n", b"ensio kept2", 1)


@pytest.mark.parametrize("damage", [cut, flipped, empty, of_another_version])
def test_damage_in_the_cache_is_found(directory, cache, passes, damage):
    first = calls(directory)
    (path,) = cache.iterdir()
    path.write_bytes(damage(path.read_bytes()))
    assert calls(directory) == first
    assert len(passes) == 2
    assert calls(directory) == first  # it was written again
    assert len(passes) == 2


def test_the_cache_of_another_version_is_not_read(directory, cache, passes, monkeypatch):
    calls(directory)
    monkeypatch.setattr(codec, "VERSION", codec.VERSION + 1)
    calls(directory)
    assert len(passes) == 2


@pytest.mark.parametrize("kind", ["writable by others", "a file", "a link", "no folder"])
def test_a_folder_that_cannot_be_trusted_is_not_used(directory, cache, passes, tmp_path, monkeypatch, kind):
    cache.parent.mkdir()
    if kind == "writable by others":
        cache.mkdir()
        cache.chmod(0o777)
    elif kind == "a file":
        cache.write_text("")
    elif kind == "a link":
        (tmp_path / "other").mkdir()
        cache.symlink_to(tmp_path / "other")
    else:
        monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nothing")
    assert calls(directory) == calls(directory)
    assert len(passes) == 2
    assert not cache.is_dir() or not list(cache.iterdir())


def test_no_place_for_a_folder_is_seen_before_anything_is_prepared(tmp_path, monkeypatch):
    places = {str(tmp_path / "new" / "folder"): True, os.devnull: False, f"{os.devnull}/below": False}
    for place, expected in places.items():
        monkeypatch.setenv("XDG_CACHE_HOME", place)
        assert user_cache.may_have_cache() is expected
    assert not (tmp_path / "new").exists()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert user_cache.write_cached("file", b"1")
    (tmp_path / "ensio").chmod(0o500)
    assert user_cache.may_have_cache()


def test_a_folder_of_another_user_is_not_used(directory, cache, passes, monkeypatch):
    calls(directory)
    owner = os.geteuid()
    monkeypatch.setattr(user_cache.os, "geteuid", lambda: owner + 1)
    calls(directory)
    assert len(passes) == 2
    assert len(list(cache.iterdir())) == 1


def test_a_full_disk_is_silent(directory, cache, passes, monkeypatch, capfd):
    def full(*_args, **_keywords):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(user_cache.os, "rename", full)
    assert calls(directory) == calls(directory)
    assert len(passes) == 2
    assert not list(cache.iterdir())
    assert capfd.readouterr() == ("", "")


def test_the_least_recently_used_files_are_removed(cache):
    for number in range(5):
        assert user_cache.write_cached(f"file{number}", bytes(100), 500)
        os.utime(cache / f"file{number}", (number, number))
    assert user_cache.read_cached("file0", 1000) == bytes(100)
    assert user_cache.write_cached("new", bytes(250), 500)
    assert {path.name for path in cache.iterdir()} == {"file0", "file4", "new"}
    assert not user_cache.write_cached("large", bytes(501), 500)
    assert user_cache.read_cached("new", 249) is None


def test_the_files_are_listed_when_they_may_be_too_large(cache, monkeypatch):
    listed = []
    monkeypatch.setattr(user_cache.os, "listdir", lambda folder: listed.append(1) or list_folder(folder))
    for number in range(4):
        assert user_cache.write_cached(f"file{number}", bytes(100), 500)
    assert listed == [1]
    (cache / "of another process").write_bytes(bytes(400))
    for number in range(4, 6):
        assert user_cache.write_cached(f"file{number}", bytes(100), 500)
    assert listed == [1, 1]
    assert sum(path.stat().st_size for path in cache.iterdir()) <= 500


def test_a_trace_file_holds_what_info_needs(directory, cache, passes, tmp_path):
    from ensembles.run.information import sums_of

    path, _ = collect(str(directory), str(tmp_path / "run.h5"))
    passes.clear()
    collected = sums_of(en.open(path))
    assert not passes
    fresh = sums_of(en.open(directory))
    assert passes
    assert collected.table.totals == fresh.table.totals
    assert collected.table.files == fresh.table.files
    assert collected.totals.io_time_ns == fresh.totals.io_time_ns


@pytest.mark.parametrize("meetings", [("begin", "end"), ()], ids=["phases", "other phases"])
def test_a_trace_file_holds_the_phases_of_a_long_run(tmp_path, cache, passes, monkeypatch, meetings):
    monkeypatch.setattr(detect, "MOST_EVENTS", 1600)
    synthetic_run(tmp_path / "run", 8, 300, seed=5, tasks_per_node=2, phases=3, meetings=meetings)
    path, _ = collect(str(tmp_path / "run"), str(tmp_path / "run.h5"))
    passes.clear()
    kept_phases = en.open(path).phases
    assert not passes
    monkeypatch.setenv("ENSIO_CACHE", "0")
    found = en.open(path).phases
    assert passes
    assert (kept_phases.rule, kept_phases.sentence) == (found.rule, found.sentence)
    assert kept_phases.count == found.count > 1
    np.testing.assert_array_equal(kept_phases.cuts_ns, found.cuts_ns)
    np.testing.assert_array_equal(kept_phases.number, found.number)


def test_a_run_is_collected_although_a_summary_refuses_it(directory, cache, tmp_path, monkeypatch):
    def refuse(self, chunk):
        raise en.EnsioError("an event ends before it starts")

    with monkeypatch.context() as broken:
        broken.setattr(RateCurve, "add", refuse)
        broken.setattr(CallTable, "add", refuse)
        path, events = collect(str(directory), str(tmp_path / "run.h5"))
    assert events == len(en.open(directory).events)
    with h5py.File(path) as file:
        assert len(file["kept"]) == 1  # what chunks hold
    assert calls(path) == calls(directory)


def rewritten(path: str, change) -> None:
    with h5py.File(path, "r+") as file:
        change(file)


def with_other_durations(file: h5py.File) -> None:
    column = file["events"]["duration"]
    column[0] = column[0] + 1


def with_other_paths(file: h5py.File) -> None:
    column = file["files"]
    column[-1] = b"/other"


def with_other_tasks(file: h5py.File) -> None:
    file.attrs["tasks"] = file.attrs["tasks"] + 1


def with_a_flipped_bit(file: h5py.File) -> None:
    for column in file["kept"].values():
        values = column[:]
        values[len(values) // 2] ^= 1
        column[:] = values


def with_a_link(file: h5py.File) -> None:
    for name in list(file["kept"]):
        del file["kept"][name]
        file["kept"][name] = h5py.SoftLink("/events/duration")


def without(file: h5py.File) -> None:
    del file["kept"]


def with_another_type(file: h5py.File) -> None:
    for name in list(file["kept"]):
        del file["kept"][name]
        file["kept"][name] = np.zeros(3)


@pytest.mark.parametrize(
    "change",
    [
        with_other_durations,
        with_other_paths,
        with_other_tasks,
        with_a_flipped_bit,
        with_a_link,
        with_another_type,
        without,
    ],
)
def test_a_changed_trace_file_is_read(directory, tmp_path, passes, monkeypatch, change):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path, _ = collect(str(directory), str(tmp_path / "run.h5"))
    passes.clear()
    assert calls(path) == calls(directory)
    assert len(passes) == 1
    rewritten(path, change)
    run = en.open(path)
    found = run.summarize(TABLE)
    assert len(passes) == 2
    expected = CallTable()
    expected.add(run.events)
    assert found.totals == expected.totals


class Derived(CallTable):
    """A class that adds to one that is kept."""


def test_only_classes_that_name_their_results_are_kept(directory):
    run = en.open(directory)
    with pytest.raises(NotKept):
        to_bytes(run.summarize(ignoring_run(Derived)), run)


def test_requests_that_cannot_be_described_have_no_key(directory):
    run = en.open(directory)
    assert key_of(SummaryRequest(lambda _: CallTable())) is None
    assert key_of(SummaryRequest(TABLE)) != key_of(SummaryRequest(TABLE, ("call",)))
    cells = [key_of(SummaryRequest(ignoring_run(partial(RateCurve, cells)))) for cells in (64, 128)]
    assert len(set(cells)) == 2
    chosen = [Selection.parse(rank=rank).for_run(run) for rank in (1, 2)]
    assert len({key_of(SummaryRequest(TABLE), each) for each in chosen}) == 2


class Held(Summary):
    """Any values."""

    results = ("value",)

    def __init__(self) -> None:
        self.value: object = None

    def add(self, chunk):
        raise NotImplementedError

    merge = add


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.tuples(st.integers(), st.text()), inner)
        | st.sets(st.text())
    ),
    max_leaves=12,
)


@given(plain)
def test_values_are_read_as_they_were_written(value):
    run = type("Dictionaries", (), {"calls": (), "files": ()})
    held, found = Held(), Held()
    held.value = value
    restore(found, to_bytes(held, run), run)
    assert found.value == value
    assert type(found.value) is type(value)


integers = st.sampled_from(["i1", "u1", "i4", "u4", "i8", "u8"])


@given(st.data(), integers, st.lists(st.integers(0, 4), max_size=3))
def test_arrays_are_read_as_they_were_written(data, kind, shape):
    limits = np.iinfo(kind)
    near = st.integers(max(limits.min, -300), min(limits.max, 70_000))
    one = data.draw(st.sampled_from([near, st.integers(int(limits.min), int(limits.max))]))
    size = int(np.prod(shape, dtype=int))
    values = np.array(data.draw(st.lists(one, min_size=size, max_size=size)), kind).reshape(shape)
    run = type("Dictionaries", (), {"calls": (), "files": ()})
    held, found = Held(), Held()
    held.value = [values, values.astype(float), np.asarray(values > 3)]
    restore(found, to_bytes(held, run), run)
    for one_found, expected in zip(found.value, held.value, strict=True):
        np.testing.assert_array_equal(one_found, expected)
        assert one_found.dtype == expected.dtype
        assert one_found.shape == expected.shape


@settings(max_examples=60)
@given(st.binary(max_size=60), st.integers(0, 10**6), st.booleans())
def test_forged_bytes_are_refused(some, place, is_packed):
    """Bytes with a valid checksum are refused, or give a summary: nothing else happens."""
    run = type("Dictionaries", (), {"calls": (), "files": ()})
    raster = Raster(3)
    content = bytearray(zlib.decompress(to_bytes(raster, run)) if is_packed else to_bytes(raster, run))
    place %= len(content)
    content[place : place + len(some)] = some
    forged = zlib.compress(bytes(content)) if is_packed else bytes(content)
    with suppress(NotKept):
        restore(Raster(3), forged, run)


def test_seals_are_of_one_run_and_one_request():
    sealed = seal(b"run", "key", b"data")
    assert unseal(b"run", "key", sealed) == b"data"
    for identity, key in ((b"other", "key"), (b"run", "other"), (b"runk", "ey")):
        with pytest.raises(NotKept):
            unseal(identity, key, sealed)


def test_the_cache_of_other_code_is_not_read(directory, cache, passes, monkeypatch):
    calls(directory)
    monkeypatch.setattr(kept, "_code_identity", lambda: b"another installation")
    calls(directory)
    assert len(passes) == 2


def test_info_of_a_collected_run_without_messages_makes_no_pass(directory, cache, passes, tmp_path):
    from ensembles.run.information import sums_of

    path, _ = collect(str(directory), str(tmp_path / "run.h5"))
    passes.clear()
    run = en.open(path)
    run.reading.source.metadata.summed = True  # as of each MPI program
    assert run.info.summed_calls
    found = sums_of(run)
    assert not passes
    assert found.summed == 0
    assert found.table.totals == sums_of(en.open(path)).table.totals
