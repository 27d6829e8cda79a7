"""What findings are made of, and the pass that gathers for all rules."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from matrices import FileSystem, Matrices, run_matrices, write_run

import ensembles as en
import ensembles.diagnosis.rules
from ensembles.answers.diagnose import diagnose
from ensembles.diagnosis.diagnose import RULES
from ensembles.diagnosis.finding import Check, Finding, NotApplicable, Where, rate_confidence
from ensembles.model.events import Events
from ensembles.model.spans import find_spans, spans_text
from ensembles.passes import group
from ensembles.passes.group import RankBuffer, SummaryRequest
from ensembles.passes.summary import Summary


def test_confidence_is_lost_by_doubt_and_gone_with_a_check_that_fails():
    sure, doubtful, wrong = (Check("x", "", holds) for holds in (True, None, False))
    assert rate_confidence((sure, sure)) < 1
    assert rate_confidence((sure, doubtful)) == pytest.approx(0.8 * rate_confidence((sure, sure)))
    assert rate_confidence((sure, wrong)) == 0


def rated(gain_s: tuple[float, float], likely_s: float = 0.0, cause: str = "o-sync") -> str:
    return Finding(cause, 0.9, Where(), {"run_s": 1.0}, (), "", gain_s, "", likely_s=likely_s).severity


def test_severity_follows_the_share_that_is_lost():
    lows = {0.0: "note", 0.019: "note", 0.02: "warning", 0.099: "warning", 0.1: "critical", 3.0: "critical"}
    assert {low: rated((low, low)) for low in lows} == lows
    likely = {0.05: "note", 0.2: "warning", 0.37: "critical"}
    assert {share: rated((0.01, 0.4), share) for share in likely} == likely
    assert [rated((0.0, 0.8), 0.4, cause) for cause in ("fewer-calls", "hdf5-filters")] == ["critical"] * 2


def test_severity_is_that_of_the_gain_that_is_left():
    whole = Finding("o-sync", 0.9, Where(), {"run_s": 1.0}, (), "", (0.2, 0.9), "", likely_s=0.5)
    assert whole.severity == "critical"
    assert replace(whole, gain_s=whole.within(0.05)).severity == "warning"
    assert replace(whole, is_symptom=True).severity == "note"


def test_spans_hold_all_numbers_and_are_few():
    assert find_spans([5, 1, 2, 3, 9]) == ((1, 3), (5, 5), (9, 9))
    assert spans_text(((1, 3), (5, 5))) == "1-3,5"
    assert find_spans([]) == ()
    numbers = np.random.default_rng(0).choice(10_000, 500, replace=False)
    spans = find_spans(numbers, most=16)
    assert len(spans) == 16
    assert all(any(low <= number <= high for low, high in spans) for number in numbers)


def pieces_of(
    sizes: list[int], chunk: int, most: int, enough: int, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[list[int]], int]:
    """The ranks in each piece, and how many were left out."""
    monkeypatch.setattr(group, "ROWS_AT_ONCE", enough)
    rank = np.repeat(np.arange(len(sizes)), sizes)
    columns = {"rank": rank, "start": np.arange(len(rank)), "call": np.zeros(len(rank))}
    events = Events.partly(columns, (), [""])
    held, pieces = RankBuffer((), most), []
    for low in range(0, len(rank), chunk):
        pieces += held.added(events.part(low, min(low + chunk, len(rank))))
    pieces += held.rest()
    # They were kept, so nothing of them may have been used again.
    for piece in pieces:
        np.testing.assert_array_equal(rank[piece.start], piece.rank)
    assert not any(hasattr(piece, "call") for piece in pieces)
    return [piece.rank.tolist() for piece in pieces], held.left_out


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("enough", [1, 4, 100])
def test_calls_of_a_task_come_together_whatever_the_chunks(chunk, enough, monkeypatch):
    sizes = [3, 1, 8, 2, 2, 5]
    pieces, left_out = pieces_of(sizes, chunk, 50, enough, monkeypatch)
    assert left_out == 0
    assert [rank for ranks in pieces for rank in ranks] == np.repeat(np.arange(6), sizes).tolist()
    for rank in range(6):
        assert sum(rank in ranks for ranks in pieces) == 1
    assert all(len(ranks) >= enough for ranks in pieces[:-1])


@pytest.mark.parametrize("chunk", [1, 2, 3, 5])
@pytest.mark.parametrize("enough", [1, 100])
def test_a_task_that_does_not_fit_is_left_out_and_the_others_are_whole(chunk, enough, monkeypatch):
    pieces, left_out = pieces_of([3, 20, 4, 12, 12, 2, 30], chunk, 6, enough, monkeypatch)
    assert [rank for piece in pieces for rank in piece] == [0] * 3 + [2] * 4 + [5] * 2
    assert left_out == 4


def test_memory_is_used_again_unless_somebody_keeps_it(monkeypatch):
    monkeypatch.setattr(group, "ROWS_AT_ONCE", 1)
    held, places, kept = RankBuffer((), 100), [], []
    for rank in range(6):
        chunk = Events.partly({"rank": np.full(5, rank), "start": np.full(5, rank)}, (), [""])
        for piece in held.added(chunk):
            places.append(piece.start.ctypes.data)
            kept += [piece.start] if rank == 3 else []
            del piece
    assert len(places) == 5
    assert len(set(places)) == 2
    assert kept[0].tolist() == [2] * 5


class _Count(Summary):
    """How many calls there are; needs no whole ranks."""

    def __init__(self, _: object = None) -> None:
        self.calls = 0

    def add(self, events: Events) -> None:
        self.calls += len(events)

    def merge(self, other: _Count) -> None:
        self.calls += other.calls


def rule(name: str, run_s: float, gain_s: float, refuses: str = "") -> SimpleNamespace:
    def evaluate(run: en.Run, summaries: Mapping[str, _Count]) -> list[Finding]:
        if refuses:
            raise NotApplicable(refuses)
        evidence = {"calls": summaries["count"].calls, "run_s": run_s}
        return [Finding(name, 0.5, Where(), evidence, (), "do this", (gain_s, gain_s), name)]

    needs = {"count": SummaryRequest(_Count, ("rank", "call"))}
    return SimpleNamespace(
        ID=name, NEEDS=needs, is_of_sums=False, preconditions=lambda run: None, evaluate=evaluate
    )


def test_rules_share_a_pass_and_the_strongest_finding_comes_first(tmp_path):
    program = run_matrices(Matrices(), 3, FileSystem())
    run = en.open(write_run(program, tmp_path / "run"))
    rules = [
        rule("a", 1e4, 9.0),
        rule("b", 1.0, 1.0),
        rule("c", 1.0, 2.0),
        rule("d", 1.0, 1.0, refuses="there is no d"),
    ]
    found = diagnose(run, rules)
    assert [finding.id for finding in found.findings] == ["c", "b", "a"]
    assert {finding.evidence["calls"] for finding in found.findings} == {len(program.events)}
    assert found.examined == ("a", "b", "c")
    assert [(entry.id, entry.reason) for entry in found.not_examined] == [("d", "there is no d")]
    assert "Not examined: d: there is no d." in str(found.in_full())


def test_each_file_of_rules_has_some_and_at_most_500_lines():
    folder = Path(ensembles.diagnosis.rules.__file__).parent
    for file in [*folder.glob("*.py"), *folder.glob("*/rule.py")]:
        if file.name == "__init__.py":
            continue
        module = sys.modules[
            ".".join([ensembles.diagnosis.rules.__name__, *file.relative_to(folder).with_suffix("").parts])
        ]
        held = [module, *vars(module).values()]
        assert any(each is rule for each in held for rule in RULES), file.name
        assert len(file.read_text().splitlines()) <= 500, file.name


def test_the_methods_page_has_the_evidence_of_each_rule():
    page = (Path(__file__).parents[3] / "docs" / "reference" / "methods" / "diagnosis.md").read_text()
    assert [rule.ID for rule in RULES if f"`{rule.ID}`" not in page] == ["straggler-node"]
    assert "| `straggler-task`, `-node` |" in page
