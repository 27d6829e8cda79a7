"""What findings are made of, and the pass that gathers for all rules."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace

import numpy as np
import pytest
from matrices import FileSystem, Matrices, run_matrices, write_run

import ensembles as en
from ensembles.diagnosis.diagnose import diagnose
from ensembles.diagnosis.finding import (
    Check,
    Finding,
    Where,
    confidence_of,
    severity_of,
    spans_of,
    spans_text,
)
from ensembles.diagnosis.gathered import whole_ranks
from ensembles.diagnosis.rule import CannotSay, Need
from ensembles.events import Events


def test_confidence_is_lost_by_doubt_and_gone_with_a_check_that_fails():
    sure, doubtful, wrong = (Check("x", holds, "") for holds in (True, None, False))
    assert confidence_of((sure, sure)) < 1
    assert confidence_of((sure, doubtful)) == pytest.approx(0.8 * confidence_of((sure, sure)))
    assert confidence_of((sure, wrong)) == 0


def test_severity_follows_the_share_that_is_lost():
    assert [severity_of(share) for share in (0.0, 0.019, 0.02, 0.099, 0.1, 3.0)] == [
        "note",
        "note",
        "warning",
        "warning",
        "critical",
        "critical",
    ]


def test_spans_hold_all_numbers_and_are_few():
    assert spans_of([5, 1, 2, 3, 9]) == ((1, 3), (5, 5), (9, 9))
    assert spans_text(((1, 3), (5, 5))) == "1-3,5"
    assert spans_of([]) == ()
    numbers = np.random.default_rng(0).choice(10_000, 500, replace=False)
    spans = spans_of(numbers, most=16)
    assert len(spans) == 16
    assert all(any(low <= number <= high for low, high in spans) for number in numbers)


def pieces_of(sizes: list[int], chunk: int, most: int) -> list[tuple[list[int], bool]]:
    rank = np.repeat(np.arange(len(sizes)), sizes)
    columns = {"rank": rank, "start": np.arange(len(rank))}
    events = Events.partly(columns, (), [""])
    chunks = (events.part(low, min(low + chunk, len(rank))) for low in range(0, len(rank), chunk))
    return [(piece.events.rank.tolist(), piece.whole) for piece in whole_ranks(chunks, most)]


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 100])
def test_calls_of_a_task_come_together_whatever_the_chunks(chunk):
    sizes = [3, 1, 8, 2, 2, 5]
    pieces = pieces_of(sizes, chunk, most=50)
    assert all(whole for _, whole in pieces)
    assert [rank for ranks, _ in pieces for rank in ranks] == np.repeat(np.arange(6), sizes).tolist()
    for rank in range(6):
        assert sum(rank in ranks for ranks, _ in pieces) == 1


@pytest.mark.parametrize("chunk", [1, 2, 3, 5])
def test_a_task_that_does_not_fit_comes_in_pieces_and_the_others_whole(chunk):
    sizes = [3, 20, 4]
    pieces = pieces_of(sizes, chunk, most=6)
    assert [rank for ranks, _ in pieces for rank in ranks] == np.repeat(np.arange(3), sizes).tolist()
    assert {rank for ranks, whole in pieces if not whole for rank in ranks} == {1}


class _Count:
    """How many calls there are; needs no whole ranks."""

    def __init__(self, _: object = None) -> None:
        self.calls = 0

    def add(self, events: Events) -> None:
        self.calls += len(events)

    def merge(self, other: _Count) -> None:
        self.calls += other.calls


def rule(name: str, severity: str, gain_s: float, refuses: str = "") -> SimpleNamespace:
    def examine(run: en.Run, summaries: Mapping[str, _Count]) -> list[Finding]:
        if refuses:
            raise CannotSay(refuses)
        evidence = {"calls": summaries["count"].calls}
        return [Finding(name, severity, 0.5, Where(), evidence, (), "do this", (gain_s, gain_s), name)]

    needs = {"count": Need(_Count, ("rank", "call"))}
    return SimpleNamespace(ID=name, NEEDS=needs, preconditions=lambda run: None, examine=examine)


def test_rules_share_a_pass_and_the_strongest_finding_comes_first(tmp_path):
    program = run_matrices(Matrices(), 3, FileSystem())
    run = en.open(write_run(program, tmp_path / "run"))
    rules = [
        rule("a", "note", 9.0),
        rule("b", "critical", 1.0),
        rule("c", "critical", 2.0),
        rule("d", "note", 1.0, refuses="there is no d"),
    ]
    found = diagnose(run, rules)
    assert [finding.id for finding in found.findings] == ["c", "b", "a"]
    assert {finding.evidence["calls"] for finding in found.findings} == {len(program.events)}
    assert found.examined == ("a", "b", "c")
    assert [(entry.id, entry.reason) for entry in found.not_examined] == [("d", "there is no d")]
    assert "not examined: d: there is no d" in str(found)
