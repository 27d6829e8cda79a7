"""Ordinals that are counted chunk by chunk are those of the whole run, whatever the chunks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensembles.model.errors import EnsioError
from ensembles.model.events import COLUMNS, Call, Events
from ensembles.structure.ordinals.numbering import compute_ordinals, with_ordinals

CALLS = (Call("unknown", "", "meta"), Call("read", "posix", "read"), Call("write", "posix", "write"))


def events_of(seed: int, counts: list[int], overlapping: bool) -> Events:
    """Calls of ranks 0, 1, ...: of two threads one behind the other, or in the order of their start."""
    random = np.random.default_rng(seed)
    n = sum(counts)
    columns = {name: np.zeros(n, dtype) for name, dtype in COLUMNS.items()}
    columns["rank"] = np.repeat(np.arange(len(counts)), counts).astype("u4")
    columns["call"] = random.integers(1, 3, n).astype("u2")
    columns["file"] = random.integers(0, 3, n).astype("u4")
    columns["start"] = np.arange(n) * 10
    if overlapping:
        columns["start"] = random.permutation(n) * 10
    columns["duration"] = np.full(n, 5)
    return Events(columns, CALLS, ["", "/a", "/b"])


def chunks_of(events: Events, size: int) -> list[Events]:
    return [events[low : low + size] for low in range(0, len(events), size)]


@given(
    st.integers(0, 99),
    st.lists(st.integers(0, 30), min_size=1, max_size=8),
    st.integers(1, 40),
    st.booleans(),
)
def test_ordinals_of_chunks_are_those_of_the_run(
    seed: int, counts: list[int], size: int, in_phases: bool
) -> None:
    events = events_of(seed, counts, overlapping=True)
    phase = (lambda events: events.start // 50) if in_phases else None
    expected = compute_ordinals(events, None if phase is None else phase(events))
    found = list(with_ordinals(iter(chunks_of(events, size)), 1 << 20, "run", phase))
    assert sum(map(len, found)) == len(events)
    if len(events):
        np.testing.assert_array_equal(np.concatenate([part.ordinal for part in found]), expected)
        np.testing.assert_array_equal(np.concatenate([part.start for part in found]), events.start)


@given(st.integers(0, 99), st.lists(st.integers(0, 30), min_size=1, max_size=8), st.integers(1, 9))
def test_ranks_too_large_to_be_held_are_counted_on_the_way(seed: int, counts: list[int], size: int) -> None:
    events = events_of(seed, counts, overlapping=False)
    found = list(with_ordinals(iter(chunks_of(events, size)), 4, "run"))
    assert sum(map(len, found)) == len(events)
    if len(events):
        np.testing.assert_array_equal(
            np.concatenate([part.ordinal for part in found]), compute_ordinals(events)
        )


def test_calls_that_overlap_in_a_rank_too_large_are_refused() -> None:
    events = events_of(5, [40], overlapping=True)
    with pytest.raises(EnsioError, match=r"run: rank 0 made too many calls .* give more memory"):
        list(with_ordinals(iter(chunks_of(events, 5)), 8, "run"))
