"""Every executor and every group honours the whole protocol of a summary."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from synthetic_runs import synthetic_run

import ensembles as en
from ensembles.diagnosis.diagnose import diagnose
from ensembles.diagnosis.evidence_rule import EvidenceRule
from ensembles.model.events import OPS, Events
from ensembles.passes import executors
from ensembles.passes.executors import ProcessExecutor, ThreadExecutor
from ensembles.passes.group import SummaryGroup, SummaryRequest
from ensembles.passes.memory import Budget
from ensembles.passes.summary import ANY_ORDER, BY_RANK, RANK_ORDER, Requirement, Summary, ignoring_run
from ensembles.summaries.runtotals import EventCount

TASKS, EVENTS = 9, 302


@pytest.fixture(scope="module")
def run_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("protocol") / "run"
    synthetic_run(folder, TASKS, EVENTS, seed=5)
    return folder


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "_FEW_EVENTS", 0)
    monkeypatch.setattr(Budget, "chunk_events", 100)


class Writes(Summary):
    """Counts writes, wrongly if a part of the protocol is left out; and ranks, chunk by chunk."""

    columns = ("call", "rank")

    def __init__(self, requires: Requirement, lookahead: int, _: object) -> None:
        self.requires, self._lookahead = requires, lookahead
        self.writes, self.ranks = 0, 0
        self._unfinished = 0

    def prepare_chunks(self, chunks: Iterator[Events], budget: Budget, path: str) -> Iterator[Events]:
        held: list[Events] = []
        for chunk in chunks:
            held.append(chunk[chunk.op == OPS.index("write")])
            if len(held) == self._lookahead:
                yield from held
                held = []
        yield from held

    def add(self, chunk: Events) -> None:
        self._unfinished += len(chunk)
        self.ranks += len(np.unique(chunk.rank))

    def finalize(self) -> None:
        self.writes += self._unfinished
        self._unfinished = 0

    def merge(self, other: Writes) -> None:
        self.writes += other.writes
        self.ranks += other.ranks


EXECUTORS: dict[str, Callable[[], object]] = {
    "one thread": lambda: ThreadExecutor(1),
    "threads": lambda: ThreadExecutor(3),
    "processes": lambda: PROCESSES,
}
PROCESSES = ProcessExecutor(2)


@pytest.mark.parametrize("requires", list(Requirement))
@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_summary_alone_and_in_a_group_is_prepared_and_finalized(
    run_path: Path, executor: str, requires: Requirement
) -> None:
    run = en.open(run_path, EXECUTORS[executor]())
    expected = len(run.select(op="write"))
    make = partial(Writes, requires, 1)
    assert run.summarize(make).writes == expected
    group = run.summarize(
        {
            "count": SummaryRequest(ignoring_run(EventCount)),
            "writes": SummaryRequest(make),
            "later": SummaryRequest(partial(Writes, requires, 4)),
            "by rank": SummaryRequest(partial(Writes, BY_RANK, 3)),
            "in order": SummaryRequest(partial(Writes, RANK_ORDER, 7)),
        }
    )
    assert group["count"].events == TASKS * EVENTS
    for name in ("writes", "later", "by rank", "in order"):
        assert group[name].writes == expected, name
    # Each rank came in one chunk, and otherwise in several of 100 events (processes have larger ones).
    assert group["by rank"].ranks == TASKS
    assert group["in order"].ranks > TASKS or executor == "processes"


def test_a_rule_s_summary_is_prepared_and_finalized(run_path: Path) -> None:
    seen = []
    rule = EvidenceRule(
        "x",
        lambda case, writes: seen.append(writes.writes),
        {"writes": SummaryRequest(partial(Writes, RANK_ORDER, 2))},
    )
    run = en.open(run_path)
    diagnose(run, [rule])
    assert seen == [len(run.select(op="write"))]


class Added(Summary):
    """How many events were added so far."""

    def __init__(self, tell: Callable[[int], None]) -> None:
        self.events, self._tell = 0, tell

    def add(self, chunk: Events) -> None:
        self.events += len(chunk)
        self._tell(self.events)

    def merge(self, other: Added) -> None:
        raise AssertionError("there is one part")


class Slowly(Added):
    """The same of a summary that prepares its chunks one by one."""

    def prepare_chunks(self, chunks: Iterator[Events], budget: Budget, path: str) -> Iterator[Events]:
        yield from chunks


class Impatient(Added):
    """A summary for which two chunks are enough."""

    def prepare_chunks(self, chunks: Iterator[Events], budget: Budget, path: str) -> Iterator[Events]:
        yield next(chunks)
        yield next(chunks)


def chunks_of(run: en.Run, read: list[int]) -> Iterator[Events]:
    for chunk in run.chunks(10):
        read.append(len(chunk))
        yield chunk


def test_a_group_holds_no_more_chunks_than_the_summary_that_waits_longest(run_path: Path) -> None:
    read: list[int] = []
    behind: list[int] = []
    requests = {
        "at once": SummaryRequest(lambda _: Added(lambda events: behind.append(sum(read) - events))),
        "prepared": SummaryRequest(lambda _: Slowly(lambda events: behind.append(sum(read) - events))),
        "later": SummaryRequest(partial(Writes, RANK_ORDER, 8)),
    }
    group = SummaryGroup(requests, None)
    group.fill(chunks_of(en.open(run_path), read), Budget.default().unwatched(), "run")
    assert group["at once"].events == group["prepared"].events == TASKS * EVENTS
    assert 0 < max(behind) <= 8 * 10


def test_a_summary_that_reads_on_no_further_stops_no_other(run_path: Path) -> None:
    ignore = [].append
    requests = {
        "impatient": SummaryRequest(lambda _: Impatient(ignore)),
        "at once": SummaryRequest(lambda _: Added(ignore)),
        "prepared": SummaryRequest(lambda _: Slowly(ignore)),
    }
    group = SummaryGroup(requests, None)
    group.fill(chunks_of(en.open(run_path), []), Budget.default().unwatched(), "run")
    events = [group[name].events for name in requests]
    assert events == [20, TASKS * EVENTS, TASKS * EVENTS]


def test_a_class_without_a_part_of_the_protocol_is_refused() -> None:
    class WithoutAdd(Summary):
        added_up = ("events",)

    with pytest.raises(TypeError, match="add"):
        WithoutAdd()
    with pytest.raises(TypeError, match="WithoutMerge defines neither `merge` nor `added_up`"):

        class WithoutMerge(Summary):
            def add(self, chunk: Events) -> None: ...


def test_a_group_requires_what_the_strictest_of_its_summaries_does() -> None:
    def group(*required: Requirement) -> SummaryGroup:
        makes = {str(each): SummaryRequest(partial(Writes, each, 1)) for each in required}
        return SummaryGroup(makes, None)

    assert group().requires is ANY_ORDER
    assert group(ANY_ORDER, RANK_ORDER).requires is RANK_ORDER
    assert group(BY_RANK, ANY_ORDER).requires is BY_RANK
    assert group(ANY_ORDER).columns == {"call", "rank"}
    assert SummaryGroup({"all": SummaryRequest(lambda _: Added(print))}, None).columns is None
