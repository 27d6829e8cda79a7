"""The latest night against those before it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from night import night_record

from ensembles.history.check import check
from ensembles.history.record import FindingRecord, RunRecord
from ensembles.history.store import History
from ensembles.model.errors import EnsioError


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> list[RunRecord]:
    folder = tmp_path_factory.mktemp("nights")
    return [night_record(folder / str(k), k) for k in range(8)]


def history_of(tmp_path: Path, nights: list[RunRecord]) -> History:
    history = History(str(tmp_path / "runs.db"), make=True)
    for number, record in enumerate(nights):
        history.add(record, "nightly", {"half": "first" if number < 4 else "second"})
    return history


def test_equal_nights_are_no_regression(tmp_path: Path, nights: list[RunRecord]) -> None:
    found = check(history_of(tmp_path, nights), "nightly")
    assert (found.verdict, found.changes, len(found.baseline)) == ("ok", [], 7)


@pytest.mark.parametrize(("slower", "verdict"), [(1.6, "regression"), (0.6, "improvement")])
def test_a_slower_night_is_a_regression_and_a_faster_one_is_not(
    tmp_path: Path, nights: list[RunRecord], slower: float, verdict: str
) -> None:
    latest = night_record(tmp_path / "latest", 99, slower=slower)
    found = check(history_of(tmp_path, [*nights, latest]), "nightly")
    assert found.verdict == verdict
    assert [(change.op, change.what) for change in found.changes] == [("write", "durations")]
    assert found.run.id == 9


def test_more_calls_are_a_regression(tmp_path: Path, nights: list[RunRecord]) -> None:
    latest = night_record(tmp_path / "latest", 99, syncs=400)
    found = check(history_of(tmp_path, [*nights, latest]), "nightly")
    assert found.verdict == "regression"
    assert ("sync", "calls", "slower") in [(one.op, one.what, one.direction) for one in found.changes]


def test_a_new_finding_is_a_regression(tmp_path: Path, nights: list[RunRecord]) -> None:
    finding = FindingRecord("strided-readahead", "critical", "reads wait")
    latest = msgspec.structs.replace(nights[-1], findings=[finding])
    found = check(history_of(tmp_path, [*nights[:-1], latest]), "nightly")
    assert (found.verdict, found.reason) == ("regression", "new finding strided-readahead: reads wait")
    known = [msgspec.structs.replace(record, findings=[finding]) for record in nights]
    (tmp_path / "known").mkdir()
    assert check(history_of(tmp_path / "known", known), "nightly").verdict == "ok"


def test_too_few_runs_say_so(tmp_path: Path, nights: list[RunRecord]) -> None:
    found = check(history_of(tmp_path, nights[:3]), "nightly")
    assert found.verdict == "too-few-runs"
    assert "add 1 or more" in found.reason


def test_the_baseline_is_chosen(tmp_path: Path, nights: list[RunRecord]) -> None:
    history = history_of(tmp_path, nights)
    found = check(history, "nightly", history.runs("nightly", {"half": "first"}))
    assert [run.id for run in found.baseline] == [1, 2, 3, 4]
    with pytest.raises(EnsioError, match="its experiments are nightly"):
        check(history, "nightli")
