"""A pass with filters reads what can match, and its summaries are those of the events that match."""

from dataclasses import replace

import numpy as np
import pytest
from arrays_of import arrays_of
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic_runs import synthetic_run

import ensembles as en
from ensembles.answers.ordinals import Operations, durations_by_ordinal
from ensembles.passes.executors import ThreadExecutor
from ensembles.passes.summary import ignoring_run
from ensembles.run.selection import Selection
from ensembles.summaries.calltable import CallTable
from ensembles.summaries.open_time import OpenTime

TASKS, EVENTS = 3, 420_000
SUMMARIES = {"calls": CallTable, "operations": Operations, "open": OpenTime}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The same run as spools and as a trace.h5 of several chunks."""
    folder = tmp_path_factory.mktemp("filtered")
    synthetic_run(folder / "run", TASKS, EVENTS, seed=5, tasks_per_node=2, phases=4)
    from ensembles.run.collect import collect

    path, _ = collect(str(folder / "run"), str(folder / "run.h5"), "gzip")
    return {"spools": en.open(folder / "run"), "trace.h5": en.open(path)}


ranks = st.lists(st.tuples(st.integers(0, TASKS), st.integers(0, 3)), min_size=1, max_size=2)
durations = st.lists(st.tuples(st.integers(0, 10**8), st.integers(0, 10**8)), min_size=1, max_size=2)
offsets = st.lists(st.tuples(st.integers(0, 1 << 40), st.integers(0, 1 << 40)), min_size=1, max_size=2)
times = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 0.4)), min_size=1, max_size=2)


@settings(max_examples=25, deadline=None)
@given(
    source=st.sampled_from(["spools", "trace.h5"]),
    rank=st.none() | ranks,
    time=st.none() | times,
    duration=st.none() | durations,
    offset=st.none() | offsets,
    op=st.none() | st.sampled_from(["read", "write", "open"]),
    summary=st.sampled_from(list(SUMMARIES)),
    threads=st.sampled_from([1, 3]),
)
def test_summaries_of_a_selection_are_those_of_its_events(
    runs, source, rank, time, duration, offset, op, summary, threads
):
    run = runs[source]
    end_s = float((run.events.start + run.events.duration).max()) * 1e-9
    selection = replace(
        Selection(),
        ops=None if op is None else (op,),
        ranks=None if rank is None else tuple((low, low + more) for low, more in rank),
        times_s=None if time is None else tuple((low * end_s, (low + more) * end_s) for low, more in time),
    )
    selection = replace(
        selection,
        durations_ns=None if duration is None else tuple((low, low + more) for low, more in duration),
        offsets=None if offset is None else tuple((low, low + more) for low, more in offset),
    )
    before, run.reading.executor = run.reading.executor, ThreadExecutor(threads)
    try:
        made = run.summarize(ignoring_run(SUMMARIES[summary]), selection=selection.for_run(run))
    finally:
        run.reading.executor = before
    by_hand = SUMMARIES[summary]()
    by_hand.add(run.events[selection.mask(run.events)])
    expected, found = arrays_of(by_hand), arrays_of(made)
    assert expected.keys() == found.keys()
    for name in expected:
        np.testing.assert_array_equal(np.sort(found[name]), np.sort(expected[name]), name)


@pytest.mark.parametrize("source", ["spools", "trace.h5"])
def test_other_ranks_are_not_read(runs, source, monkeypatch):
    run, read = runs[source], []
    chunks = type(run.reading.source).chunks

    def counted(self, request, damage):
        for chunk in chunks(self, request, damage):
            read.append(len(chunk))
            yield chunk

    monkeypatch.setattr(type(run.reading.source), "chunks", counted)
    selection = Selection.parse(rank=2).for_run(run)
    assert run.summarize(ignoring_run(CallTable), selection=selection).events == EVENTS
    assert sum(read) == EVENTS


@pytest.mark.parametrize("source", ["spools", "trace.h5"])
def test_ordinals_of_some_ranks_read_no_others(runs, source, monkeypatch):
    run, read = runs[source], set()
    writes = [number for number, call in enumerate(run.calls) if call.op == "write"]
    duration = run.events.duration[(run.events.rank == 2) & np.isin(run.events.call, writes)]
    chunks = type(run.reading.source).chunks

    def seen(self, request, damage):
        for chunk in chunks(self, request, damage):
            read.update(np.unique(chunk.rank).tolist())
            yield chunk

    monkeypatch.setattr(type(run.reading.source), "chunks", seen)
    monkeypatch.setenv("ENSIO_CACHE", "0")
    found = durations_by_ordinal(run, Selection.parse(rank=2, op="write").for_run(run))
    assert read == {2}
    assert sum(each.n for each in found.totals) == len(duration) > 1000
    assert max(each.max_s for each in found.totals) == pytest.approx(duration.max() * 1e-9)
    assert all(each.tasks == 1 for each in found.totals)


@pytest.mark.parametrize("source", ["spools", "trace.h5"])
def test_a_limit_of_events_ends_the_reading(runs, source, monkeypatch, capsys):
    from ensembles.cli.main import main

    run, read = runs[source], []
    chunks = type(run.reading.source).chunks

    def counted(self, request, damage):
        for chunk in chunks(self, request, damage):
            read.append(len(chunk))
            yield chunk

    monkeypatch.setattr(type(run.reading.source), "chunks", counted)
    assert main(["events", str(run.path), "--limit", "7"]) == 0
    printed = capsys.readouterr()
    assert len(printed.out.split("\n\n")[0].splitlines()) == 2 + 7
    assert printed.err == "ensio: more events are not shown: raise --limit to see them\n"
    assert 0 < sum(read) <= 1 << 17


def test_other_times_are_hardly_read(runs, monkeypatch):
    run, read = runs["trace.h5"], []
    start_s = run.events.start * 1e-9
    chunks = type(run.reading.source).chunks

    def counted(self, request, damage):
        for chunk in chunks(self, request, damage):
            read.append(len(chunk))
            yield chunk

    monkeypatch.setattr(type(run.reading.source), "chunks", counted)
    low, high = np.percentile(start_s, [40, 41])
    selection = Selection.parse(time=f"{low}..{high}").for_run(run)
    found = run.summarize(ignoring_run(CallTable), selection=selection).events
    assert found == int(((start_s >= low) & (start_s < high)).sum())
    assert 0 < sum(read) < 0.9 * TASKS * EVENTS


def test_chunks_that_are_shorter_than_a_duration_are_not_read(tmp_path, monkeypatch):
    from made_runs import run_of

    from ensembles.run.collect import collect

    # Rank 0 makes many short calls after each other, rank 1 few long ones.
    short = [("pwrite", 1e-4 * i, 5e-5, 4096) for i in range(40_000)]
    long = [("pwrite", 5.0 * i, 4.5, 4096) for i in range(10)]
    run_of(tmp_path / "run", [short, long])
    run, read = en.open(collect(str(tmp_path / "run"), str(tmp_path / "run.h5"))[0]), []
    chunks = type(run.reading.source).chunks

    def counted(self, request, damage):
        for chunk in chunks(self, request, damage):
            read.append(len(chunk))
            yield chunk

    monkeypatch.setattr(type(run.reading.source), "chunks", counted)
    selection = Selection.parse(duration="4.2..").for_run(run)
    assert run.summarize(ignoring_run(CallTable), selection=selection).events == 10
    assert 10 <= sum(read) < 20_000
