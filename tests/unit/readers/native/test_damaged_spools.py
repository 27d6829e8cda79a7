"""Files that are cut short, overwritten or foreign: one sentence, or the rest with a note; never a crash."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_spools import RUNNING, made_events, spool
from spool_writer import HEAD_BYTES

import ensembles as en
from ensembles.cli.main import main
from ensembles.model.c_layout import CONSTANTS, EVENT, SPOOL
from ensembles.model.events import Call
from ensembles.run.collect import collect

FOREIGN = {
    "empty": b"",
    "text": b"the quick brown fox\n" * 100,
    "zeros": bytes(200_000),
    "elf": b"\x7fELF" + bytes(5000),
    "short": b"ENSIO",
    "magic alone": b"ENSIOSPL",
    "half a head": b"ENSIOSPL" + bytes(SPOOL.size // 2),
    "head of zeros": b"ENSIOSPL" + bytes(HEAD_BYTES),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("whole") / "whole.spool"
    spool(path, [made_events(3000, 1), made_events(500, 2)], rank=0)
    return path.read_bytes()


def read_all(path: Path) -> en.Run:
    run = en.open(path)
    assert sum(map(len, run.chunks(1000))) == len(run.events)
    return run


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_foreign_file_is_refused_in_one_sentence_that_names_it(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "foreign.spool"
    path.write_bytes(FOREIGN[kind])
    for opened in (path, tmp_path):
        with pytest.raises(en.EnsioError, match=r"foreign\.spool") as caught:
            en.open(opened)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", FOREIGN)
def test_beside_good_spools_a_foreign_one_is_a_note(tmp_path: Path, kind: str) -> None:
    spool(tmp_path / "good.spool", [made_events(10)], rank=0)
    (tmp_path / "foreign.spool").write_bytes(FOREIGN[kind])
    run = en.open(tmp_path)
    assert len(run.events) == 10
    assert any("foreign.spool" in note for note in run.notes)


def test_other_files_in_a_run_directory_are_no_ones_business(tmp_path: Path) -> None:
    spool(tmp_path / "good.spool", [made_events(10)], rank=0)
    (tmp_path / "job.out").write_text("hello")
    (tmp_path / "core").mkdir()
    os.mkfifo(tmp_path / "pipe")
    run = en.open(tmp_path)
    assert (len(run.events), run.notes) == (10, [])


def test_a_spool_of_another_version_names_both_versions(tmp_path: Path) -> None:
    path = spool(tmp_path / "s", rank=0, version=CONSTANTS["ENSIO_SPOOL_VERSION"] + 1)
    with pytest.raises(en.EnsioError, match=f"layout version {CONSTANTS['ENSIO_SPOOL_VERSION'] + 1}"):
        en.open(path)


def test_a_spool_of_the_other_byte_order_says_so(tmp_path: Path) -> None:
    path = tmp_path / "s"
    path.write_bytes(b"LPSOISNE" + bytes(5000))
    with pytest.raises(en.EnsioError, match="byte order"):
        en.open(path)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.spool")
    with pytest.raises(en.EnsioError, match=r"pipe\.spool cannot be read: it is not a regular file"):
        en.open(tmp_path / "pipe.spool")
    with pytest.raises(en.EnsioError, match=r"pipe\.spool cannot be read"):
        en.open(tmp_path)


def test_nothing_at_the_path_and_an_empty_directory_are_told(tmp_path: Path) -> None:
    with pytest.raises(en.EnsioError, match="nowhere cannot be read: No such file"):
        en.open(tmp_path / "nowhere")
    with pytest.raises(en.EnsioError, match="is not a run directory"):
        en.open(tmp_path)


@pytest.mark.parametrize("beyond", [0, 30, 64 + 48 * 7 + 11, HEAD_BYTES, 2 * HEAD_BYTES + 1000])
def test_what_is_left_of_a_truncated_spool_is_called_partial(
    tmp_path: Path, whole: bytes, beyond: int
) -> None:
    path = tmp_path / "cut.spool"
    path.write_bytes(whole[: HEAD_BYTES + beyond])
    run = read_all(path)
    first = run.events[run.events.thread == 0]
    np.testing.assert_array_equal(first.requested, made_events(3000, 1)["requested"][: len(first)])
    assert len(first) >= (7 if beyond > 100 else 0)
    assert any("cut short" in note for note in run.notes)


def test_a_destroyed_window_loses_only_its_own_calls(tmp_path: Path, whole: bytes) -> None:
    path = tmp_path / "hit.spool"
    path.write_bytes(whole[:HEAD_BYTES] + b"\xaa" * HEAD_BYTES + whole[2 * HEAD_BYTES :])
    run = read_all(path)
    second = run.events[run.events.thread == 1]
    np.testing.assert_array_equal(second.requested, made_events(500, 2)["requested"])
    assert any(f"byte {HEAD_BYTES}" in note for note in run.notes)


@pytest.mark.parametrize("first_ticks", [1000, 1 << 40])
@pytest.mark.parametrize("at", [HEAD_BYTES + 4096 * page for page in (1, 2, 7)])
def test_a_block_of_zeros_costs_its_own_calls_and_they_are_counted(
    tmp_path: Path, at: int, first_ticks: int
) -> None:
    """The block cuts calls in two: of the last one only the end is left, and no call at tick 0."""
    events = made_events(3000, 1, first_ticks)
    path = spool(tmp_path / "hole.spool", [events], rank=0, first_ticks=first_ticks)
    with path.open("r+b") as file:
        os.pwrite(file.fileno(), bytes(4096), at)
    run = read_all(path)
    first = (at - HEAD_BYTES - CONSTANTS["ENSIO_WINDOW_HEADER_BYTES"]) // EVENT.size
    last = (at + 4095 - HEAD_BYTES - CONSTANTS["ENSIO_WINDOW_HEADER_BYTES"]) // EVENT.size
    kept = np.delete(events, range(first, last + 1))
    np.testing.assert_array_equal(run.events.requested, kept["requested"])
    assert f"hole.spool: {last + 1 - first} events left out as damaged or incomplete" in run.notes


@pytest.mark.parametrize("zeros", [4096, HEAD_BYTES])
def test_a_window_whose_head_is_zero_is_missed(tmp_path: Path, whole: bytes, zeros: int) -> None:
    """No window may begin where the one before does not end, but for the hole before a large one."""
    path = tmp_path / "hole.spool"
    path.write_bytes(whole[:HEAD_BYTES] + bytes(zeros) + whole[HEAD_BYTES + zeros :])
    assert any(f"no valid window begins at byte {HEAD_BYTES}," in note for note in read_all(path).notes)
    large = CONSTANTS["ENSIO_WINDOW_LARGE_BYTES"]
    head = bytearray(whole[HEAD_BYTES : 2 * HEAD_BYTES])
    head[8:16] = large.to_bytes(8, "little")
    moved = whole[:HEAD_BYTES] + bytes(large - HEAD_BYTES) + bytes(head)
    path.write_bytes(moved.ljust(2 * large, b"\0"))
    with path.open("r+b") as file:
        at = SPOOL.field_offset("allocated_bytes")
        os.pwrite(file.fileno(), (2 * large).to_bytes(8, "little"), at)
    assert read_all(path).notes == []


@given(size=st.integers(0, 400_000))
def test_truncation_anywhere_never_crashes(
    tmp_path_factory: pytest.TempPathFactory, whole: bytes, size: int
) -> None:
    path = tmp_path_factory.mktemp("cut") / "s"
    path.write_bytes(whole[:size])
    try:
        run = read_all(path)
    except en.EnsioError as error:
        sentence = str(error)
    else:
        sentence = " ".join(run.notes) or "whole"
    shutil.rmtree(path.parent)
    noted = "s is cut short" in sentence or "its windows end at byte" in sentence
    assert str(path) in sentence or noted or size >= len(whole)


@pytest.mark.parametrize("told", [1 << 34, 2 * HEAD_BYTES, HEAD_BYTES])
def test_a_damaged_size_in_the_head_loses_no_call_and_is_no_cut(
    tmp_path: Path, whole: bytes, told: int
) -> None:
    path, at = tmp_path / "s", SPOOL.field_offset("allocated_bytes")
    path.write_bytes(whole[:at] + told.to_bytes(8, "little") + whole[at + 8 :])
    run = read_all(path)
    assert len(run.events) == 3500
    assert f"its head says {told} bytes, and its windows end at byte {len(whole)}" in " ".join(run.notes)
    assert "damaged" in run.reading.missing


def test_a_spool_that_claims_terabytes_needs_no_memory(tmp_path: Path) -> None:
    """A window of nearly 1 TiB in a file with a hole: what is there is read within a limit on memory."""
    path = spool(tmp_path / "s", [made_events(1364)], rank=0, allocated_bytes=1 << 40)
    with path.open("r+b") as file:
        file.seek(HEAD_BYTES + 8)
        file.write(((1 << 40) - HEAD_BYTES).to_bytes(8, "little"))
        file.truncate(1 << 40)
    program = f"import ensembles; print(sum(map(len, ensembles.open({str(path)!r}).chunks())))"
    limit = 4 << 30
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=600,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    assert done.stdout == "1364\n", done.stderr


def test_a_damaged_table_of_calls_puts_no_control_characters_out(tmp_path: Path) -> None:
    calls = {1: Call("pre\0ad", "posix", "read"), 2: Call("pwrite", "posix", "write")}
    run = read_all(spool(tmp_path / "a.spool", [made_events(10)], rank=0, calls=calls))
    assert [call.name for call in run.calls] == ["unknown", "pwrite"]
    assert "a table of calls is damaged (1 line): functions have no name" in run.notes
    assert all(map(str.isprintable, run.notes))


def impossible(events: np.ndarray, count: int) -> np.ndarray:
    """Damage some calls."""
    events["duration"][5 : 5 + count] = 1 << 62
    return events


LACKING = {
    "damaged events": lambda path: spool(path, [impossible(made_events(300), 60)], rank=0),
    "lost calls": lambda path: spool(path, [made_events(300)], rank=0, dropped_events=60, lost_calls=60),
    "a lost window": lambda path: path.write_bytes(
        spool(path, [made_events(3000)], rank=0).read_bytes()[:60_000]
    ),
    "another process": lambda path: (
        spool(path, [made_events(30)], rank=0),
        path.with_name("2.spool").write_bytes(b"?"),
    ),
}


@pytest.mark.parametrize("kind", LACKING)
@pytest.mark.parametrize("is_collected", [False, True])
def test_of_a_run_that_lacks_many_calls_no_answer_is_certain(
    tmp_path: Path, kind: str, is_collected: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    spool(tmp_path / "good/0.spool", [made_events(300)], rank=0)
    (tmp_path / "bad").mkdir()
    LACKING[kind](tmp_path / "bad/1.spool")
    good, bad = str(tmp_path / "good"), str(tmp_path / "bad")
    if is_collected:
        bad = collect(bad, str(tmp_path / "trace.h5"))[0]
    found = en.diagnose(en.open(bad))
    assert found.lacks
    nothing = "No finding, because nothing could be examined: parts of the record are missing"
    assert str(found).startswith(("Of a part of the run: ", nothing))
    assert "not-io" not in found.examined
    assert found.account is None
    for command in (
        ["diagnose", bad, "--fail-on", "warning"],
        ["compare", good, "--with", bad, "--fail-on", "slower"],
    ):
        assert main(command) == 2
        shown = capsys.readouterr()
        assert "cannot be answered" in shown.err
        assert "passes" not in shown.out
    database = str(tmp_path / "runs.db")
    assert main(["history", "add", "--db", database, "--experiment", "e", bad]) == 2
    assert "is not added: " in capsys.readouterr().err
    assert main(["history", "add", "--db", database, "--experiment", "e", good]) == 0
    assert not en.diagnose(en.open(good)).lacks


def test_a_call_in_which_a_process_was_killed_is_not_damage(tmp_path: Path) -> None:
    spool(tmp_path / "1.spool", [impossible(made_events(30), 1)], rank=0, state=RUNNING)
    run = en.open(tmp_path)
    assert len(run.events) == 29
    assert not run.reading.lacks


@pytest.mark.parametrize("opened", ["", "1.spool"])
def test_beside_a_damaged_file_of_its_process_a_spool_is_read(tmp_path: Path, opened: str) -> None:
    spool(tmp_path / "1.spool", [made_events(30)], rank=0, tasks=2)
    (tmp_path / "1.ensio").write_bytes(b"?" * 100)
    run = read_all(tmp_path / opened)
    assert len(run.events) == 30
    assert any("1.ensio" in note for note in run.notes)
    assert run.reading.lacks


@pytest.mark.parametrize(("zeros", "said"), [(4096, "lost its head"), (1 << 20, "was killed at its start")])
def test_without_its_head_a_spool_is_kept_and_not_read(
    tmp_path: Path, zeros: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """As the file system may leave it if the machine stops."""
    path = spool(tmp_path / "1.spool", [made_events(300)], rank=0, tasks=2, state=RUNNING)
    path.write_bytes(bytes(zeros) + path.read_bytes()[zeros:])
    for command in ["info", str(tmp_path)], ["collect", str(tmp_path)], ["diagnose", str(path)]:
        assert main(command) == 2
        shown = capsys.readouterr().err
        assert said in shown
        assert shown.count("\n") == 1
    assert "1.spool" in os.listdir(tmp_path)
    spool(tmp_path / "2.spool", [made_events(30)], rank=1, tasks=2)
    run = read_all(tmp_path)
    assert len(run.events) == 30
    assert any("1.spool" in note and said in note for note in run.notes)
