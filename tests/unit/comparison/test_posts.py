"""Runs with non-blocking requests: waits are compared, and posts are not taken for the whole of the I/O."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

import ensembles as en
from ensembles.answers.compare import answer_comparisons
from ensembles.comparison.compare import ReadRun, compare_read_runs, compare_runs, read_run
from ensembles.run.selection import Selection

RUNS = Path(__file__).resolve().parents[2] / "corpus" / "runs"


@pytest.fixture
def run(tmp_path: Path) -> en.Run:
    subprocess.run(["tar", "-xJf", RUNS / "flights-ompio.tar.xz", "-C", tmp_path], check=True)
    return en.open(str(tmp_path / "flights-ompio"))


def test_waits_for_requests_are_a_kind_of_calls_and_no_waiting_for_tasks(run: en.Run) -> None:
    found = compare_runs([[run], [run]])
    assert ("mpiio", "wait") in {(one.layer, one.op) for one in found}
    assert ("mpisync", "wait") not in {(one.layer, one.op) for one in found}
    (waited,) = (total for total in found[0].run_totals if total.what == "wait_time_s")
    events = run.events
    barriers = [number for number, call in enumerate(run.calls) if call.waits_for_tasks]
    mine = sum(float(events.duration[events.call == number].sum()) for number in barriers) * 1e-9
    assert waited.typical == pytest.approx([mine, mine])


def test_posts_are_named(run: en.Run) -> None:
    notes = compare_runs([[run], [run]])[0].notes
    assert any("only post a request, for which another call waits" in note for note in notes)


def blocking(read: ReadRun, factor: float) -> ReadRun:
    """The same program with calls that block: no posts, no waits for I/O, and the waits are in the calls."""
    time_s = dict(read.calls.time_s)
    waits_s = time_s.pop(("mpiio", "wait"))
    time_s["mpiio", "write"] = factor * (waits_s + time_s["mpiio", "write"])
    time_s["mpiio", "read"] *= factor
    calls = {key: one for key, one in read.calls.calls.items() if key in time_s}
    samples = {key: one for key, one in read.calls.samples.items() if key in time_s}
    return replace(read, posts={}, calls=replace(read.calls, time_s=time_s, calls=calls, samples=samples))


@pytest.mark.parametrize(("factor", "direction"), [(2.0, "faster"), (0.5, "slower"), (1.0, None)])
def test_posts_that_replace_blocking_calls_are_judged_with_their_waits(
    run: en.Run, factor: float, direction: str | None
) -> None:
    read = read_run(run, Selection.parse(), True)
    assert read.posts["mpiio", "write"] > 0
    found = compare_read_runs([[blocking(read, factor)], [read]])
    (write,) = (one for one in found if (one.layer, one.op) == ("mpiio", "write"))
    assert (write.verdict, write.direction) == ("different", direction)
    assert write.blocked is not None
    assert write.blocked.ratios == pytest.approx([1 / factor])
    assert write.slowdown == pytest.approx(max(1.0, 1 / factor))
    assert write.posts == [0, read.posts["mpiio", "write"]]
    assert write.parts == []
    assert write.shift is None
    waits = [one for one in found if (one.layer, one.op) == ("mpiio", "wait")]
    assert all(one.verdict != "different" for one in waits)
    text = str(answer_comparisons([write, *(one for one in found if one is not write)]))
    headline = " ".join(text.partition("\n\n")[0].split())
    assert "only post a request instead of 0; with the reads and waits, " in headline
    assert "median ×" not in headline


def test_posts_in_both_groups_are_compared_as_before(run: en.Run) -> None:
    assert all(one.blocked is None and one.posts == [] for one in compare_runs([[run], [run]]))
