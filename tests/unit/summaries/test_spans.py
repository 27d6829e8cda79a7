"""Spans by phase and task equal those made call by call, however the calls are divided."""

from collections import defaultdict

import numpy as np
from generated_events import CALLS, events, parts_of
from hypothesis import given
from hypothesis import strategies as st

from ensembles.structure.phases.critical_path import CriticalIo
from ensembles.structure.phases.result import Phases
from ensembles.structure.phases.table import Spans, sum_spans
from ensembles.summaries.active_time import disjoint
from ensembles.summaries.ranktable import COLUMNS, RankTable
from ensembles.summaries.runtotals import direction_of_events


def call_by_call(phase, chunk):
    """The rows, by key."""
    direction = direction_of_events(chunk)
    calls = defaultdict(list)
    for at, number in enumerate(phase.tolist()):
        if number > 0:
            calls[number, int(chunk.rank[at])].append(at)
    return {
        key: (
            len(mine),
            min(int(chunk.start[at]) for at in mine),
            max(int(chunk.end[at]) for at in mine),
            sum(int(chunk.duration[at]) for at in mine),
            max(mine, key=lambda at: (int(chunk.end[at]), int(chunk.duration[at]), at)),
            *(sum(int(chunk.moved[at]) for at in mine if direction[at] == way) for way in range(2)),
        )
        for key, mine in calls.items()
    }


@given(events(), st.integers(0, 2**32))
def test_rows_are_those_made_call_by_call(chunk, seed):
    random = np.random.default_rng(seed)
    phase = random.integers(-1, 4, len(chunk))
    spans = sum_spans(phase, chunk, with_bytes=True)
    rows = list(zip(*(column.tolist() for column in spans), strict=True))
    assert {row[:2]: row[2:] for row in rows} == call_by_call(phase, chunk)
    assert len(rows) == len({row[:2] for row in rows})
    without = sum_spans(phase, chunk)
    assert not without.bytes_read.any()
    assert not without.bytes_written.any()
    for name in Spans._fields[:7]:
        np.testing.assert_array_equal(getattr(without, name), getattr(spans, name))


@given(events(least=1), st.integers(0, 2**32))
def test_time_on_the_critical_path_does_not_depend_on_the_chunks(chunk, seed):
    random = np.random.default_rng(seed)
    cuts = np.sort(random.integers(-(10**6), 10**6, 3))
    phases = Phases("steps", 4, 1.0, "", cuts, np.arange(1, 5))
    at_once, divided = CriticalIo(phases), CriticalIo(phases)
    at_once.add(chunk)
    for part in parts_of(chunk, random):
        other = CriticalIo(phases)
        other.add(part)
        divided.merge(other)
    for name, column in at_once.to_arrays().items():
        np.testing.assert_array_equal(column, divided.to_arrays()[name], err_msg=name)
    assert at_once.path_s == divided.path_s


@given(events(), st.integers(0, 2**32))
def test_sums_by_rank_are_copies_of_chunks_whose_memory_is_reused(chunk, seed):
    whole, kept = RankTable(CALLS), RankTable(CALLS)
    chunk.columns["depth"][:] = 0
    whole.add(chunk)
    for part in parts_of(chunk, np.random.default_rng(seed)):
        kept.add(part)
        for column in part.columns.values():
            column[:] = 1
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(whole, name), getattr(kept, name), err_msg=name)


@given(st.lists(st.tuples(st.integers(-50, 50), st.integers(0, 20)), min_size=1, max_size=30))
def test_joined_times_are_those_ns_by_ns(times):
    start, length = np.array(times).T
    joined = disjoint([np.stack([start, start + length])])
    # Touching spans are joined; one of no length is a span where nothing else is.
    inside = {at for begin, end in joined.T.tolist() for at in range(begin, end)}
    assert inside == {at for begin, ns in times for at in range(begin, begin + ns)}
    assert (joined[0, 1:] > joined[1, :-1]).all()
    assert {begin for begin, _ in times} <= {
        at for begin, end in joined.T.tolist() for at in range(begin, end + 1)
    }
