"""Damaged and hostile Darshan logs: one sentence that names the file, in bounded time and memory."""

from __future__ import annotations

import importlib.util
import re
import resource
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from commands_here import executed
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from made_darshan_logs import MAGIC, MadeLog, Segment, counted_log, traced_log

import ensembles as en
from ensembles.model.errors import MissingLibrary
from ensembles.readers.foreign.darshan.source import read_counters

pytestmark = pytest.mark.slow

ENSIO = Path(sys.executable).with_name("ensio")
HEAD_BYTES = 1328
FUZZ = settings(max_examples=20, derandomize=True, database=None, suppress_health_check=list(HealthCheck))


def _opens(path: Path) -> en.Run | None:
    """The run; None: a sentence about the file. Whatever else is raised fails the test."""
    try:
        run = en.open(path)
        assert run.summary.count >= 0
    except en.EnsioError as error:
        sentence = str(error)
    else:
        return run
    assert str(path) in sentence
    assert "\n" not in sentence
    return None


def _refused(path: Path, words: str = "damaged Darshan log") -> None:
    with pytest.raises(en.EnsioError, match=words) as caught:
        en.open(path)
    assert str(path) in str(caught.value)


def _rows(run: en.Run) -> list[tuple[int, ...]]:
    events = run.events
    return list(zip(*(events.columns[name].tolist() for name in events.columns), strict=True))


@seed(1)
@FUZZ
@given(data=st.data())
def test_a_flipped_bit_of_what_is_compressed_never_changes_calls_quietly(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    content = bytearray(traced_log().bytes())
    place = data.draw(st.integers(8 * HEAD_BYTES, 8 * len(content) - 1))
    content[place // 8] ^= 1 << place % 8
    folder = tmp_path_factory.mktemp("flip")
    (folder / "log").write_bytes(content)
    run = _opens(folder / "log")
    if run is not None:
        assert _rows(run) == _rows(en.open(traced_log().write(folder / "whole")))


@seed(2)
@FUZZ
@given(data=st.data())
def test_bytes_of_the_head_may_be_anything(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    log = data.draw(st.sampled_from([traced_log(), counted_log(), counted_log(version="3.21")]))
    content = bytearray(log.bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        # The places of modules that are used lie near the beginning.
        place = data.draw(st.one_of(st.integers(16, 250), st.integers(16, HEAD_BYTES - 8)))
        content[place : place + 8] = data.draw(
            st.one_of(
                st.binary(min_size=1, max_size=8),
                st.integers(0, 2**64 - 1).map(lambda n: struct.pack("<Q", n)),
            )
        )
    folder = tmp_path_factory.mktemp("head")
    (folder / "log").write_bytes(content)
    _opens(folder / "log")


@seed(3)
@FUZZ
@given(data=st.data())
def test_unpacked_bytes_may_be_anything(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    log = data.draw(st.sampled_from([traced_log, counted_log]))()
    log.stripe(7, 1 << 20, [1, 2])
    module = data.draw(st.sampled_from(sorted(log.parts)))
    part = bytearray(log.parts[module])
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(part) - 1))
        part[place : place + 8] = data.draw(st.binary(min_size=1, max_size=8))
    log.parts[module] = bytes(part[: data.draw(st.one_of(st.just(len(part)), st.integers(1, len(part))))])
    folder = tmp_path_factory.mktemp("unpacked")
    _opens(log.write(folder / "log"))


@pytest.mark.parametrize("part", [17, 300, 1327, 1400, -40, -1])
def test_a_cut_log_is_refused(tmp_path: Path, part: int) -> None:
    (tmp_path / "log").write_bytes(traced_log().bytes()[:part])
    _refused(tmp_path / "log")


@pytest.mark.parametrize(
    "counts",
    [(1 << 60, 0), (-1, 4), (4, 0), ((1 << 62), (1 << 62)), (461168601842738791, 0), ((1 << 31) + 1, 0)],
)
def test_counts_that_lie_are_refused(tmp_path: Path, counts: tuple[int, int]) -> None:
    log = MadeLog(tasks=1, names={7: "/f"})
    log.trace("DXT_POSIX", 7, 0, [Segment(i, 1, 1.0, 2.0) for i in range(3)], counts=counts)
    _refused(log.write(tmp_path / "log"))


@pytest.mark.parametrize("tasks", [0, -1, 1 << 60, (1 << 24) + 1])
def test_jobs_of_so_many_tasks_are_refused(tmp_path: Path, tasks: int) -> None:
    _refused(MadeLog(tasks=tasks, names={1: "/f"}).write(tmp_path / "log"), "tasks")


@pytest.mark.parametrize("rank", [2, 1 << 40, -7])
def test_ranks_that_the_job_does_not_have_are_refused(tmp_path: Path, rank: int) -> None:
    log = traced_log()
    log.trace("DXT_POSIX", 8, rank, [Segment(0, 1, 1.0, 2.0)])
    _refused(log.write(tmp_path / "log"), "rank")


@pytest.mark.parametrize("time_s", [float("nan"), float("inf"), -1e300, 1e12])
def test_times_that_make_no_sense_are_refused(tmp_path: Path, time_s: float) -> None:
    log = MadeLog(tasks=1, names={7: "/f"})
    log.trace("DXT_POSIX", 7, 0, [Segment(0, 1, 1.0, time_s)])
    _refused(log.write(tmp_path / "log"), "time")
    counts = counted_log()
    counts.count("STDIO", 10, 0, WRITES=1, F_WRITE_TIME=time_s)
    _refused(counts.write(tmp_path / "log"), "time")


def test_counters_beyond_all_numbers_are_refused(tmp_path: Path) -> None:
    log = counted_log()
    for _ in range(3):
        log.count("POSIX", 8, 0, WRITES=1 << 62, BYTES_WRITTEN=(1 << 63) - 1)
    _refused(log.write(tmp_path / "log"), "impossibly large")


def test_stripes_that_lie_are_refused_or_left_out(tmp_path: Path) -> None:
    for count, told in ((1 << 40, 2), (2, 1 << 40), (-5, 2), (1 << 31, 1 << 31)):
        log = counted_log()
        head = struct.pack("<Qqqq", 7, -1, 1, told)
        log.parts["LUSTRE"] = head + struct.pack("<7q16s2q", 1 << 20, count, 1, 0, 0, -1, 0, b"", 5, 6)
        run = _opens(log.write(tmp_path / "log"))
        assert run is None or run.info.striping_of("/scratch/shared.dat") is None or count == 2


def test_mount_lines_and_names_that_do_not_end_are_survived(tmp_path: Path) -> None:
    for mounts in ((("x" * 3000, "/" + "y" * 20),), (("", ""),), (("ext4", "/a\nrubbish"),)):
        _opens(counted_log(mounts=mounts).write(tmp_path / "log"))
    content = counted_log(command="c" * 2900).bytes()
    (tmp_path / "log").write_bytes(content)
    assert _opens(tmp_path / "log") is not None
    log = counted_log()
    log.names[99] = "n" * 100_000
    assert _opens(log.write(tmp_path / "log")) is not None


def test_paths_with_control_characters_reach_no_terminal(tmp_path: Path) -> None:
    log = MadeLog(tasks=1, names={7: "/tmp/\x1b[31mred\n"}, command="/bin/\x1b]0;title\x07")
    log.trace("DXT_POSIX", 7, 0, [Segment(0, 1, 1.0, 2.0)])
    done = subprocess.run(
        [ENSIO, "info", log.write(tmp_path / "log")], capture_output=True, text=True, check=True
    )
    assert "\x1b" not in done.stdout + done.stderr


def test_a_log_that_unpacks_without_end_is_refused_in_bounded_memory(tmp_path: Path) -> None:
    """A record that announces 33 million calls; four million are there, all zeros: 160 MiB in 160 KiB."""
    packing = zlib.compressobj(9)
    record = struct.pack("<Qqq64sqq", 7, 0, 0, b"node", 1 << 25, 0)
    body = packing.compress(record)
    for _ in range(160):
        body += packing.compress(bytes(1 << 20))
    body += packing.flush()
    log = MadeLog(tasks=1, names={7: "/f"}, parts={"DXT_POSIX": b"?"})
    packed = log.packed
    log.packed = lambda part: body if part == b"?" else packed(part)  # type: ignore[method-assign]
    path = log.write(tmp_path / "log")
    assert path.stat().st_size < 1 << 18
    command = [ENSIO, "info", path]
    done = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=_at_most_3_gib)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "implausible compression ratio" in line


def _at_most_3_gib() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))


@pytest.mark.parametrize(
    ("version", "second"), [(b"2.06", struct.pack("<q", MAGIC)), (b"1.21", struct.pack(">q", 4279))]
)
def test_a_log_of_darshan_1_or_2_is_called_so(tmp_path: Path, version: bytes, second: bytes) -> None:
    import gzip

    (tmp_path / "log.gz").write_bytes(gzip.compress(version.ljust(8, b"\0") + second + bytes(4000)))
    _refused(tmp_path / "log.gz", f"format {version.decode()}, which Darshan's library does not read")


def test_a_log_of_the_future_or_without_compression_is_called_so(tmp_path: Path) -> None:
    content = traced_log().bytes()
    (tmp_path / "log").write_bytes(b"4.00" + content[4:])
    _refused(tmp_path / "log", "format 4.00")
    (tmp_path / "log").write_bytes(content[:16] + b"\x02" + content[17:])
    _refused(tmp_path / "log", "not compressed by zlib or bzip2")


def _package(folder: Path, monkeypatch: pytest.MonkeyPatch, is_old: bool) -> None:
    """Put a package darshan before the installed one: without its library, or as version 3.4.4 had it."""
    installed = Path(importlib.util.find_spec("darshan").submodule_search_locations[0])  # type: ignore
    made = folder / "darshan" / "backend"
    made.mkdir(parents=True)
    (folder / "darshan" / "__init__.py").touch()
    declarations = (installed / "backend" / "api_def_c.py").read_text()
    (made / "api_def_c.py").write_text(
        declarations.replace("num_comps", "stripe_count") if is_old else declarations
    )
    if is_old:
        (folder / "darshan.libs").symlink_to(installed.parent / "darshan.libs")
    monkeypatch.setenv("PYTHONPATH", str(folder))


@pytest.mark.parametrize(
    ("is_old", "words"), [(False, "came without its library"), (True, "does not fit .*num_comps")]
)
def test_a_library_that_is_missing_or_does_not_fit_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_old: bool, words: str
) -> None:
    log = traced_log()
    log.stripe(7, 1 << 20, [1, 2])
    path = log.write(tmp_path / "log")
    _package(tmp_path / "packages", monkeypatch, is_old)
    with pytest.raises(MissingLibrary, match=words) as caught:
        en.open(path)
    assert "damaged" not in str(caught.value)
    assert re.search(r"pip install .* --target \S+/site-packages 'darshan>=3.5'$", str(caught.value))


def test_an_archive_is_not_called_damaged_where_the_library_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [str(counted_log().write(tmp_path / name)) for name in ("one", "two")]
    _package(tmp_path / "packages", monkeypatch, is_old=False)
    with pytest.raises(MissingLibrary, match="came without its library"):
        list(read_counters([path] for path in paths))


def test_commands_tell_damage_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(traced_log().bytes()[:-5])
    for command in ("info", "modes", "report"):
        done = executed(command, tmp_path / "log", *(["-o", tmp_path / "r"] if command == "report" else []))
        (line,) = done.stderr.splitlines()
        assert done.returncode == 2
        assert str(tmp_path / "log") in line
