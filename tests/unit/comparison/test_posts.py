"""Runs with non-blocking requests: waits are compared, and posts are not taken for the whole of the I/O."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import ensembles as en
from ensembles.comparison.compare import compare_runs

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
