"""Where filters leave it open, an ensemble is of the outermost calls of the kind with most time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from bokeh.models import Title
from made_runs import run_of

import ensembles as en
from ensembles import viz
from ensembles.ensemble import from_run, main_ensemble
from ensembles.model.events import Call, Events
from ensembles.run.selection import Selection

CALLS = (
    Call("MPI_File_write", "mpiio", "write"),
    Call("pwrite", "posix", "write"),
    Call("fprintf", "stdio", "write"),
    Call("pread", "posix", "read"),
    Call("MPI_Barrier", "mpisync", "wait"),
)


def events_of(*rows: tuple[str, int, int, int]) -> Events:
    """Events of rows (function, depth, size, how many), a microsecond each."""
    names = [call.name for call in CALLS]
    number = np.concatenate([np.full(many, names.index(name)) for name, _, _, many in rows])
    depth = np.concatenate([np.full(many, depth) for _, depth, _, many in rows])
    size = np.concatenate([np.full(many, size) for _, _, size, many in rows])
    columns = dict.fromkeys(("rank", "thread", "carried", "file", "error"), np.zeros(len(number)))
    columns |= {"call": number, "depth": depth, "offset": np.full(len(number), -1), "requested": size}
    columns |= {"moved": size, "start": np.arange(len(number)) * 2000, "duration": np.full(len(number), 1000)}
    return Events(columns, CALLS, [""])


def groups(
    *rows: tuple[str, int, int, int], parts: int = 1, outermost: bool = True
) -> list[main_ensemble.CallGroup]:
    events, found = events_of(*rows), main_ensemble.CallGroups(outermost)
    for some in np.array_split(np.arange(len(events)), parts):
        one = main_ensemble.CallGroups(outermost)
        one.add(events[some])
        found.merge(one)
    return found.groups()


ROWS = (
    ("MPI_File_write", 0, 1 << 20, 10),
    ("pwrite", 1, 1 << 20, 40),
    ("fprintf", 0, 43, 1000),
    ("pread", 0, 4096, 5),
    ("MPI_Barrier", 0, 0, 7),
)


@pytest.mark.parametrize("parts", [1, 4])
def test_calls_inside_others_do_not_count(parts: int) -> None:
    found = groups(*ROWS, parts=parts)
    assert [(group.layer, group.op, group.calls) for group in found] == [
        ("stdio", "write", 1000),
        ("mpiio", "write", 10),
        ("mpisync", "wait", 7),
        ("posix", "read", 5),
    ]
    assert found[1].filters == "--layer mpiio --op write --size 1MiB"
    assert str(found[0]) == "1,000 writes of 43 B (stdio)"
    assert groups(*ROWS, outermost=False)[1].layer == "posix"


def test_sizes_of_a_class_are_one_group() -> None:
    (found,) = groups(("pread", 0, 600, 3), ("pread", 0, 900, 2))
    assert (found.calls, found.bytes, found.least_bytes, found.most_bytes) == (5, 3600, 600, 900)
    assert found.filters == "--layer posix --op read --size 600B..900B"


@pytest.fixture
def mixed(tmp_path: Path) -> en.Run:
    """Writes of 1 MiB, many of 43 bytes, and reads."""
    calls = [("pwrite", 0.01 * i, 1e-3, 1 << 20) for i in range(20)]
    calls += [("pwrite", 0.3 + 0.001 * i, 1e-5, 43) for i in range(100)]
    calls += [("pread", 0.5 + 0.01 * i, 1e-3, 4096) for i in range(10)]
    return run_of(tmp_path / "run", [calls, calls])


@pytest.mark.parametrize("long", [False, True])
def test_an_ensemble_is_of_the_calls_that_move_most(
    mixed: en.Run, long: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if long:
        monkeypatch.setattr(from_run, "HELD_EVENTS", 0)
    whole = mixed.ensemble()
    assert whole.n == 40
    assert whole.notes[0].startswith("taken are 40 writes of 1.00 MiB (posix), which moved 99.")
    assert "200 writes of 43 B (posix), --layer posix --op write --size 43B" in whole.notes[0]
    for found in (whole.moments(), whole.quantiles()):
        assert found.notes[0] == whole.notes[0]
        assert "200 writes of 43 B (posix), --layer" in str(found)
    assert mixed.ensemble(op="read").moments().notes[:1] != whole.notes[:1]
    subtitles = [
        " ".join(title.text.split())
        for title in viz.histogram(whole, cumulative=True).select({"type": Title})
    ]
    assert any(text.startswith("Taken are 40 writes of 1.00 MiB") for text in subtitles)
    # Writes and reads of 1 ms, 40 and 20, and 200 writes of 10 us.
    assert f"and took {100 * 40 / 62:.3g} % of the time" in whole.notes[0]
    assert "Most time is in" not in whole.notes[0]
    assert mixed.ensemble(size="43").n == 200
    assert mixed.ensemble(op="write", size="0..").n == 240
    assert mixed.ensemble(op="read").n == 20
    assert mixed.ensemble(rank=1).n == 20
    assert mixed.ensemble(call="pwrite", size="0..").n == 120 * 2
    assert mixed.ensemble(layer="posix", op="write,read", size="0..").n == 260
    assert mixed.ensemble(per="MiB", op="write", per_byte=True).n == 240


def test_calls_with_most_time_are_taken_and_named_where_they_move_no_bytes(tmp_path: Path) -> None:
    calls = [("pwrite", 0.01 * i, 1e-4, 1 << 20) for i in range(20)]
    calls += [("fsync", 0.3 + 0.1 * i, 5e-2, 0) for i in range(4)]
    calls += [("pread", 0.9 + 0.001 * i, 1e-5, 4096) for i in range(10)]
    run = run_of(tmp_path / "run", [calls, calls])
    (note,) = run.ensemble().notes
    share = 100 * 0.2 / (0.2 + 0.002 + 0.0001)
    assert note.startswith(
        f"taken are 8 sync calls (posix), which took {share:.3g} % of the time; left out: 40"
    )
    assert "Most time is in" not in note
    assert run.ensemble().n == 8
    # Times per MiB, and parts of calls, are of calls that move bytes.
    assert run.ensemble(per="MiB").n == run.ensemble(per="MiB", per_byte=True, op="write").n == 40
    chosen, (note,) = main_ensemble.main_group(run, Selection().for_run(run), transfers=True)
    assert (chosen.layers, chosen.ops, chosen.sizes) == (("posix",), ("write",), ((1 << 20, 1 << 20),))
    assert f"Most time is in 8 x fsync, {share:.3g} %: --layer posix --call fsync" in note
    assert note.startswith("taken are 40 writes of 1.00 MiB")


def test_calls_that_wait_are_left_out_also_beside_calls_of_one_kind(
    mixed: en.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing else was left out then, and the ensemble took the barriers too."""
    one_kind = groups(("pwrite", 0, 4096, 61), ("MPI_Barrier", 0, 0, 15))
    monkeypatch.setattr(main_ensemble, "call_groups", lambda run, selection: one_kind)
    whole = Selection().for_run(mixed)
    chosen, notes = main_ensemble.main_group(mixed, whole)
    assert (chosen.layers, chosen.ops, notes) == (("posix",), ("write",), [])
    monkeypatch.setattr(main_ensemble, "call_groups", lambda run, selection: one_kind[1:])
    assert main_ensemble.main_group(mixed, whole)[0].ops is None  # waiting only


def test_the_size_with_most_time_is_taken_not_that_with_the_bytes(tmp_path: Path) -> None:
    calls = [("pwrite", 0.01 * i, 1e-4, 1 << 20) for i in range(20)]
    calls += [("pwrite", 0.3 + 0.02 * i, 1e-2, 54 << 10) for i in range(30)]
    run = run_of(tmp_path / "run", [calls, calls])
    (note,) = run.ensemble(op="write", layer="posix").notes
    assert note.startswith(
        "taken are 60 writes of 54.0 KiB (posix), which moved 7.3 % of the bytes and took 99"
    )
    assert "40 writes of 1.00 MiB (posix), --layer posix --op write --size 1MiB" in note
    # A report shows the same size.
    page = Path(run.path) / "report.html"
    viz.write_report(run, page)
    assert "Taken are 60 writes of 54.0 KiB (posix)" in page.read_text().replace("\xa0", " ")


def test_filters_that_choose_one_kind_leave_nothing_out(mixed: en.Run) -> None:
    _, notes = main_ensemble.main_group(mixed, Selection.parse(op="read").for_run(mixed))
    assert notes == []
    assert mixed.ensemble(op="read", size="4KiB", layer="posix").notes == []
