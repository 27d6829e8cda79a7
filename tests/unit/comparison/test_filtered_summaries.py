"""Filters of runs without events: times are those of the chosen calls."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

import ensembles as en
from ensembles.comparison.compare import compare_runs

RUNS = Path(__file__).resolve().parents[2] / "corpus" / "runs"


def test_times_of_filtered_summaries_are_those_of_the_chosen_calls(tmp_path: Path) -> None:
    with tarfile.open(RUNS / "replay-profile.tar.xz") as archive:
        archive.extractall(tmp_path)
    run = en.open(tmp_path / "replay-profile")
    found = compare_runs([[run], [run]], op="write", ordinal=2)
    chosen = run.ensemble(op="write", layer="posix", ordinal=2)
    (write,) = (one for one in found if one.layer == "posix")
    (time_s,) = (total for total in write.totals if total.what == "time_s")
    mean_s = chosen.moments().mean_s.value
    assert time_s.typical == pytest.approx([chosen.n * mean_s] * 2)
    whole = compare_runs([[run], [run]], op="write")
    (time_s,) = (
        total for one in whole if one.layer == "posix" for total in one.totals if total.what == "time_s"
    )
    cells = run.summary.cells
    writes = [
        number for number, call in enumerate(run.summary.calls) if (call.layer, call.op) == ("posix", "write")
    ]
    mine = [number in writes for number in cells["call"].tolist()]
    assert time_s.typical == pytest.approx([float(cells["time_ns"][mine].sum()) * 1e-9] * 2)
